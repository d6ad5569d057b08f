#include "tokenizer/gguf_pre.h"

#include "tokenizer/pretokenizer.h"

namespace vitrine {
namespace {

using Patterns = std::span<const std::string_view>;

#define VT_CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define VT_TAIL R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define VT_UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define VT_LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
// Words that start a new one where lower case turns to upper, with an ending per use.
#define VT_CASED_WORDS(ending)                             \
  R"([^\r\n\p{L}\p{N}]?)" VT_UPPER "*" VT_LOWER "+" ending \
  "|"                                                      \
  R"([^\r\n\p{L}\p{N}]?)" VT_UPPER "+" VT_LOWER "*" ending "|"
#define VT_CASED_TAIL R"( ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
// Everything but white space and the full stops and commas of several scripts.
#define VT_BLOOM " ?[^(\\s|.,!?\u2026\u3002\uFF0C\u3001\u0964\u06D4\u060C)]+"
#define VT_ASCII_PUNCTUATION R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~])"

constexpr std::string_view kGpt2[] = {kGpt2Pattern};
constexpr std::string_view kLlama3[] = {VT_CONTRACTIONS
                                        R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)" VT_TAIL};
constexpr std::string_view kQwen2[] = {VT_CONTRACTIONS
                                       R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)" VT_TAIL};
constexpr std::string_view kQwen35[] = {
    VT_CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::string_view kMiniCpm5[] = {
    R"(\p{N}{1,3})", VT_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+|)" VT_TAIL};
constexpr std::string_view kLaguna[] = {
    R"([^\n]+|[\n]+)", VT_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)" VT_TAIL};
constexpr std::string_view kSeedCoder[] = {
    VT_CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::string_view kBailing[] = {
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"};
constexpr std::string_view kJais2[] = {
    VT_CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+)"
    R"(|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S))"
    R"(|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})"};
constexpr std::string_view kExaoneMoe[] = {
    VT_CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)"};
constexpr std::string_view kTekken[] = {VT_CASED_WORDS("") R"(\p{N}|)" VT_CASED_TAIL};
constexpr std::string_view kGpt4o[] = {
    VT_CASED_WORDS(VT_CONTRACTIONS "?") R"(\p{N}{1,3}|)" VT_CASED_TAIL};
constexpr std::string_view kTinyAya[] = {
    R"(\d{1,3}(?=(?:\d{3})*\b))",
    VT_CASED_WORDS(VT_CONTRACTIONS "?") R"(\p{N}{1,3}|)" VT_CASED_TAIL};
constexpr std::string_view kYoutu[] = {
    "[\uAC00-\uD7A3\u3131-\u318E]+|["
    "\uFF01\u2026\u201C\u201D\u2018\u2019\u2014\uFF1A\uFF1B\uFF0C\u3001-\u303F\uFE30-\uFE4F]+|["
    "\u3105-\u312F]+|[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+",
    VT_CASED_WORDS(VT_CONTRACTIONS "?") R"(\p{N}|)" VT_CASED_TAIL};
constexpr std::string_view kKimiK2[] = {
    R"([\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+)" VT_CONTRACTIONS
    R"(?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*)" VT_CONTRACTIONS
    R"(?|\p{N}{1,3}|)" VT_TAIL};
constexpr std::string_view kDeepSeekLlm[] = {
    R"([\r\n])",
    "\\s?[A-Za-z\u00B5\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u01BA\u01BC-\u01BF\u01C4-\u0293\u0295-"
    "\u02AF\u0370-\u0373\u0376\u0377\u037B-\u037D\u037F\u0386\u0388-\u038A\u038C\u038E-\u03A1"
    "\u03A3-\u03F5\u03F7-\u0481\u048A-\u052F\u0531-\u0556\u10A0-\u10C5\u13A0-\u13F5\u13F8-\u13FD"
    "\u1C90-\u1CBA\u1CBD-\u1CBF\u1D00-\u1D2B\u1D6B-\u1D77\u1D79-\u1D9A\u1E00-\u1F15\u1F18-\u1F1D"
    "\u1F20-\u1F45\u1F48-\u1F4D\u1F50-\u1F57\u1F59\u1F5B\u1F5D\u1F5F-\u1F7D\u1F80-\u1FB4\u1FB6-"
    "\u1FBC\u1FBE\u1FC2-\u1FC4\u1FC6-\u1FCC\u1FD0-\u1FD3\u1FD6-\u1FDB\u1FE0-\u1FEC\u1FF2-\u1FF4"
    "\u1FF6-\u1FFC\u2102\u2107\u210A-\u2113\u2115\u2119-\u211D\u2124\u2126\u2128\u212A-\u212D"
    "\u212F-\u2134\u2139\u213C-\u213F\u2145-\u2149\u214E\u2183\u2184\u2C00-\u2C7B\u2C7E-\u2CE4"
    "\u2CEB-\u2CEE\u2CF2\u2CF3\uA640-\uA66D\uA680-\uA69B\uA722-\uA76F\uA771-\uA787\uA78B-\uA78E"
    "\uAB70-\uABBF\uFB00-\uFB06\uFB13-\uFB17\uFF21-\uFF3A\uFF41-\uFF5A\U00010400-\U0001044F"
    "\U000104B0-\U000104D3\U000104D8-\U000104FB\U00010C80-\U00010CB2\U00010CC0-\U00010CF2"
    "\U000118A0-\U000118DF\U0001E900-\U0001E943]+",
    "\\s?[!-/:-~\uFF01-\uFF0F\uFF1A-\uFF5E\u2018-\u201F\u3000-\u3002]+",
    R"(\s+$)",
    "[\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF]+",
    R"(\p{N}+)"};
constexpr std::string_view kDeepSeekCoder[] = {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
                                               "[\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF]+",
                                               R"(\p{N})"};
constexpr std::string_view kDeepSeekV3[] = {
    R"(\p{N}{1,3})", "[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+",
    VT_ASCII_PUNCTUATION
    R"([A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::string_view kAfmoe[] = {
    R"(\p{N}+)", R"((?=(\d{3})+(?!\d)))",
    "[\u4E00-\u9FFF\u3400-\u4DBF\uF900-\uFAFF\u3040-\u309F\u30A0-\u30FF\uFF65-\uFF9F\u2F00-"
    "\u2FDF\u0E40-\u0E7F\u0E80-\u0EFF\u1780-\u17FF\u1000-\u109F\uAA60-\uAA7F\uA9E0-\uA9FF\uAC00-"
    "\uD7AF\u1100-\u11FF]+",
    VT_ASCII_PUNCTUATION
    R"([A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::string_view kSuperBpe[] = {R"(\p{N}+)", R"((?=(\d{3})+(?!\d)))"};
constexpr std::string_view kFalcon[] = {R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2Pattern,
                                        "[0-9][0-9][0-9]"};
constexpr std::string_view kDefault[] = {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2Pattern, R"(\p{N}+)",
                                         "[0-9][0-9][0-9]"};
constexpr std::string_view kStarCoder[] = {R"(\p{N})", kGpt2Pattern};
constexpr std::string_view kBloom[] = {VT_BLOOM};
constexpr std::string_view kViking[] = {VT_BLOOM, R"(\p{N})"};
constexpr std::string_view kChameleon[] = {
    "<sentinel:[0-9]+>",       "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z",
    R"(([\t\n]|    |  ))",     R"(\p{N})",
    R"([\p{P}!-/:-@\[-`{-~])", kGpt2Pattern};
constexpr std::string_view kLines[] = {R"([^\n]+|[\n]+)"};
constexpr std::string_view kWords[] = {R"(\S+)"};

struct Entry {
  std::string_view name;
  GgufPre pre;
};

constexpr GgufPre plain(Patterns patterns) { return {patterns}; }
constexpr GgufPre whole(Patterns patterns) { return {patterns, true}; }
constexpr GgufPre whole_with_bos(Patterns patterns) { return {patterns, true, true}; }
constexpr GgufPre with_sep(Patterns patterns) { return {patterns, false, false, true}; }
constexpr GgufPre marked(Patterns patterns, bool bos) {
  return {patterns, false, bos, false, true};
}

constexpr Entry kEntries[] = {
    {"", plain(kDefault)},
    {"default", plain(kDefault)},
    {"llama3", whole_with_bos(kLlama3)},
    {"llama-v3", whole_with_bos(kLlama3)},
    {"llama-bpe", whole_with_bos(kLlama3)},
    {"falcon3", whole_with_bos(kLlama3)},
    {"falcon-h1", whole_with_bos(kLlama3)},
    {"pixtral", whole_with_bos(kLlama3)},
    {"midm-2.0", whole_with_bos(kLlama3)},
    {"lfm2", whole_with_bos(kLlama3)},
    {"jina-v5-nano", whole_with_bos(kLlama3)},
    {"tekken", whole_with_bos(kTekken)},
    {"dbrx", plain(kLlama3)},
    {"smaug-bpe", plain(kLlama3)},
    {"glm4", plain(kLlama3)},
    {"chatglm-bpe", plain(kLlama3)},
    {"minicpm5", whole(kMiniCpm5)},
    {"deepseek-llm", plain(kDeepSeekLlm)},
    {"deepseek-coder", plain(kDeepSeekCoder)},
    {"deepseek-v3", plain(kDeepSeekV3)},
    {"hunyuan-dense", plain(kDeepSeekV3)},
    {"joyai-llm", plain(kDeepSeekV3)},
    {"youtu", whole(kYoutu)},
    {"falcon", plain(kFalcon)},
    {"starcoder", plain(kStarCoder)},
    {"refact", plain(kStarCoder)},
    {"command-r", plain(kStarCoder)},
    {"smollm", plain(kStarCoder)},
    {"codeshell", plain(kStarCoder)},
    {"exaone", plain(kStarCoder)},
    {"minerva-7b", plain(kStarCoder)},
    {"mellum2", plain(kStarCoder)},
    {"gpt-2", plain(kGpt2)},
    {"gpt2", plain(kGpt2)},
    {"phi-2", plain(kGpt2)},
    {"mpt", plain(kGpt2)},
    {"olmo", plain(kGpt2)},
    {"jais", plain(kGpt2)},
    {"trillion", plain(kGpt2)},
    {"granite-docling", plain(kGpt2)},
    {"jina-es", plain(kGpt2)},
    {"jina-de", plain(kGpt2)},
    {"jina-v2-es", plain(kGpt2)},
    {"jina-v2-de", plain(kGpt2)},
    {"gigachat", plain(kGpt2)},
    {"a.x-4.0", plain(kGpt2)},
    {"mellum", plain(kGpt2)},
    {"modern-bert", plain(kGpt2)},
    {"exaone4", plain(kGpt2)},
    {"jina-v1-en", with_sep(kGpt2)},
    {"jina-v2-code", with_sep(kGpt2)},
    {"roberta-bpe", with_sep(kGpt2)},
    {"jais-2", plain(kJais2)},
    {"qwen2", plain(kQwen2)},
    {"deepseek-r1-qwen", plain(kQwen2)},
    {"kormo", plain(kQwen2)},
    {"f2llmv2", plain(kQwen2)},
    {"megrez", plain(kQwen2)},
    {"stablelm2", plain(kQwen2)},
    {"hunyuan", plain(kQwen2)},
    {"solar-open", plain(kQwen2)},
    {"grok-2", plain(kQwen2)},
    {"qwen35", plain(kQwen35)},
    {"poro-chat", plain(kBloom)},
    {"bloom", plain(kBloom)},
    {"gpt3-finnish", plain(kBloom)},
    {"viking", plain(kViking)},
    {"chameleon", {kChameleon, false, true}},
    {"gpt-4o", plain(kGpt4o)},
    {"llama4", plain(kGpt4o)},
    {"kanana2", plain(kGpt4o)},
    {"talkie", plain(kGpt4o)},
    {"minimax-m2", plain(kGpt4o)},
    {"granite-embed-multi-97m", whole(kGpt4o)},
    {"tiny_aya", plain(kTinyAya)},
    {"cohere2moe", plain(kTinyAya)},
    {"superbpe", plain(kSuperBpe)},
    {"bailingmoe", plain(kBailing)},
    {"bailingmoe2", plain(kBailing)},
    {"llada-moe", plain(kBailing)},
    {"seed-coder", plain(kSeedCoder)},
    {"kimi-k2", plain(kKimiK2)},
    {"afmoe", plain(kAfmoe)},
    {"laguna", plain(kLaguna)},
    {"exaone-moe", plain(kExaoneMoe)},
    {"gemma4", marked(kLines, true)},
    {"granite-embed-multi-311m", marked(kLines, true)},
    {"sarvam-moe", marked(kLines, false)},
    {"whitespace", plain(kWords)},
};

}  // namespace

const GgufPre* find_gguf_pre(std::string_view name) {
  for (const Entry& entry : kEntries)
    if (entry.name == name) return &entry.pre;
  return nullptr;
}

std::string gguf_pre_names() {
  std::string names;
  for (const Entry& entry : kEntries) {
    if (entry.name.empty()) continue;
    if (!names.empty()) names += ", ";
    names += entry.name;
  }
  return names;
}

}  // namespace vitrine
