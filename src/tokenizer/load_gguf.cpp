// GGUF's tokenizer.ggml.* keys to a Tokenizer.
#include <algorithm>
#include <array>

#include "base/utf8.h"
#include "tokenizer/bpe.h"
#include "tokenizer/gguf_pre.h"
#include "tokenizer/parts.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/unigram.h"
#include "tokenizer/wordpiece.h"

namespace vitrine {
namespace {

constexpr std::string_view kSpaceMark = "\u2581";

// tokenizer.ggml.token_type.
TokenKind token_kind(std::int64_t type) {
  switch (type) {
    case 2:
      return TokenKind::kUnknown;
    case 3:
      return TokenKind::kControl;
    case 4:
      return TokenKind::kUserDefined;
    case 5:
      return TokenKind::kUnused;
    case 6:
      return TokenKind::kByte;
    default:
      return TokenKind::kNormal;
  }
}

// Ends of turns and texts that converters have been known to mark as plain tokens.
bool looks_special(std::string_view content) {
  static constexpr std::string_view kNames[] = {
      "<|eot_id|>", "<|im_end|>", "<|end|>",         "<end_of_turn>", "<|endoftext|>",
      "<EOT>",      "<|eom_id|>", "<|end_of_text|>", "[EOT]",         "<｜end▁of▁sentence｜>"};
  return std::find(std::begin(kNames), std::end(kNames), content) != std::end(kNames);
}

class GgufReader {
 public:
  explicit GgufReader(const Meta& meta) : meta_(meta), parts_(std::make_unique<TokenizerParts>()) {}

  Result<std::unique_ptr<Tokenizer>> read() {
    if (!meta_.has("tokenizer.ggml.model"))
      return make_error(ErrorCode::kNotFound, "the file has no tokenizer.ggml.model");
    VT_TRY(std::string_view model, meta_.get_string("tokenizer.ggml.model"));
    if (model == "none" || model == "no_vocab")
      return make_error(ErrorCode::kNotFound, "the file has no tokenizer (its model is \"{}\")",
                        model);
    words_ = model == "bert";
    VT_RETURN_IF_ERROR(read_tokens());
    if (model == "gpt2" || model == "gemma4") {
      VT_RETURN_IF_ERROR(read_bpe(model));
    } else if (model == "llama") {
      VT_RETURN_IF_ERROR(read_llama());
    } else if (model == "t5") {
      VT_RETURN_IF_ERROR(read_t5());
    } else if (model == "bert") {
      VT_RETURN_IF_ERROR(read_bert());
    } else {
      return make_error(ErrorCode::kUnsupported,
                        "tokenizer.ggml.model is \"{}\"; gpt2, llama, t5, bert and gemma4 are "
                        "supported",
                        model);
    }
    VT_RETURN_IF_ERROR(read_around());
    VT_RETURN_IF_ERROR(add_tokens());
    VT_RETURN_IF_ERROR(parts_->added.build(parts_->normalizer));
    return std::make_unique<Tokenizer>(std::move(parts_));
  }

 private:
  Status check_count(std::string_view key, std::size_t found) const {
    if (found == static_cast<std::size_t>(parts_->vocab.size())) return Ok{};
    return make_error(ErrorCode::kMalformed, "{} has {} elements for {} tokens", key, found,
                      parts_->vocab.size());
  }

  // Word pieces are stored with a mark on words and none on continuations; tokenizer.json has it
  // the other way round, and so has everything here.
  static std::string restore_word_piece(std::string_view content, TokenKind kind) {
    if (kind != TokenKind::kNormal || (content.starts_with('[') && content.ends_with(']')))
      return std::string(content);
    if (content.starts_with(kSpaceMark)) return std::string(content.substr(kSpaceMark.size()));
    return fmt::format("##{}", content);
  }

  Status read_tokens() {
    VT_TRY(std::vector<std::string_view> tokens, meta_.get_strings("tokenizer.ggml.tokens"));
    if (tokens.size() > 16'000'000)
      return make_error(ErrorCode::kTooLarge, "tokenizer.ggml.tokens has {} tokens", tokens.size());
    std::vector<std::int64_t> types;
    if (meta_.has("tokenizer.ggml.token_type")) {
      VT_TRY(types, meta_.get_ints("tokenizer.ggml.token_type"));
      if (types.size() != tokens.size())
        return make_error(ErrorCode::kMalformed,
                          "tokenizer.ggml.token_type has {} elements for {} tokens", types.size(),
                          tokens.size());
    }
    std::string token;  // a copy, so that what is checked is what is kept if the file changes
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      token = tokens[i];
      TokenKind kind = types.empty() ? TokenKind::kNormal : token_kind(types[i]);
      if (kind == TokenKind::kNormal && looks_special(token)) kind = TokenKind::kControl;
      if (kind == TokenKind::kByte && byte_token_value(token) < 0)
        return make_error(ErrorCode::kMalformed,
                          "tokenizer.ggml.tokens[{}] is a byte token spelt \"{}\"; it must be "
                          "<0x00> to <0xFF>",
                          i, utf8_sanitize(token.substr(0, 80)));
      if (words_)
        parts_->vocab.set(static_cast<std::int32_t>(i), restore_word_piece(token, kind), kind);
      else
        parts_->vocab.set(static_cast<std::int32_t>(i), token, kind);
    }
    return Ok{};
  }

  // Special ids outside the vocabulary are common in converted files and mean "none".
  Result<std::optional<std::int32_t>> special(std::string_view key, std::int64_t missing) const {
    VT_TRY(std::int64_t id,
           meta_.get_int(std::string("tokenizer.ggml.") + std::string(key), missing));
    if (id < 0 || id >= parts_->vocab.size()) return std::optional<std::int32_t>();
    return std::optional<std::int32_t>(static_cast<std::int32_t>(id));
  }

  Status read_special(std::int64_t bos, std::int64_t eos, std::int64_t unk, std::int64_t pad) {
    VT_TRY(parts_->bos, special("bos_token_id", bos));
    VT_TRY(parts_->eos, special("eos_token_id", eos));
    VT_TRY(parts_->unk, special("unknown_token_id", unk));
    VT_TRY(parts_->pad, special("padding_token_id", pad));
    return Ok{};
  }

  Status read_bpe(std::string_view model) {
    VT_TRY(std::string_view name, meta_.get_string("tokenizer.ggml.pre", ""));
    if (model == "gemma4") name = "gemma4";
    const GgufPre* pre = find_gguf_pre(name);
    if (pre == nullptr)
      return make_error(ErrorCode::kUnsupported, "tokenizer.ggml.pre is \"{}\"; known are: {}",
                        name, gguf_pre_names());
    VT_RETURN_IF_ERROR(read_special(-1, -1, -1, -1));
    for (std::string_view pattern : pre->patterns)
      VT_RETURN_IF_ERROR(parts_->pre_tokenizer.add_regex(pattern, SplitBehavior::kIsolated, false));
    if (pre->marks) parts_->normalizer.add(norm::Replace{" ", std::string(kSpaceMark)});
    BpeOptions options;
    options.byte_level = !pre->marks && name != "whitespace";
    options.byte_fallback = !options.byte_level;
    options.ignore_merges = pre->ignore_merges;
    auto bpe = std::make_unique<Bpe>(parts_->vocab, options);
    VT_RETURN_IF_ERROR(read_merges(*bpe));
    parts_->model = std::move(bpe);
    parts_->kind = options.byte_level ? "byte-level BPE" : "SentencePiece BPE";
    if (options.byte_level) {
      parts_->decoder.add(dec::ByteLevel{});
    } else {
      parts_->decoder.add(dec::Replace{std::string(kSpaceMark), " "});
      parts_->decoder.add(dec::RawBytes{});
      parts_->decoder.add(dec::Fuse{});
    }
    parts_->raw_added = true;
    add_bos_ = pre->add_bos || pre->add_sep;
    add_eos_ = pre->add_sep;
    return Ok{};
  }

  Status read_merges(Bpe& bpe) {
    VT_TRY(std::vector<std::string_view> merges, meta_.get_strings("tokenizer.ggml.merges"));
    for (std::size_t i = 0; i < merges.size(); ++i) {
      // The first character may itself be a space.
      std::size_t space = merges[i].find(' ', 1);
      if (space == std::string_view::npos) continue;
      bpe.add_merge(merges[i].substr(0, space), merges[i].substr(space + 1),
                    static_cast<std::uint32_t>(i), false);
    }
    return Ok{};
  }

  Result<std::vector<float>> read_scores() {
    if (!meta_.has("tokenizer.ggml.scores"))
      return make_error(ErrorCode::kNotFound,
                        "the file has no tokenizer.ggml.scores, which its tokenizer needs");
    VT_TRY(std::vector<float> scores, meta_.get_floats("tokenizer.ggml.scores"));
    VT_RETURN_IF_ERROR(check_count("tokenizer.ggml.scores", scores.size()));
    return scores;
  }

  void add_space_decoder(bool prefix) {
    parts_->decoder.add(dec::Replace{std::string(kSpaceMark), " "});
    parts_->decoder.add(dec::RawBytes{});
    parts_->decoder.add(dec::Fuse{});
    if (prefix) parts_->decoder.add(dec::Strip{" ", 1, 0});
  }

  Status read_llama() {
    VT_TRY(std::vector<float> scores, read_scores());
    VT_RETURN_IF_ERROR(read_special(1, 2, 0, -1));
    VT_TRY(bool prefix, meta_.get_bool("tokenizer.ggml.add_space_prefix", true));
    if (prefix) parts_->normalizer.add(norm::Prepend{std::string(kSpaceMark)});
    parts_->normalizer.add(norm::Replace{" ", std::string(kSpaceMark)});
    parts_->model =
        std::make_unique<ScoreBpe>(parts_->vocab, scores, parts_->unk.value_or(kNoToken));
    parts_->kind = "SentencePiece BPE";
    add_space_decoder(prefix);
    add_bos_ = true;
    return Ok{};
  }

  Status read_t5() {
    VT_TRY(std::vector<float> scores, read_scores());
    VT_RETURN_IF_ERROR(read_special(-1, 1, 2, 0));
    VT_TRY(bool prefix, meta_.get_bool("tokenizer.ggml.add_space_prefix", true));
    VT_TRY(bool collapse, meta_.get_bool("tokenizer.ggml.remove_extra_whitespaces", false));
    if (meta_.has("tokenizer.ggml.precompiled_charsmap")) {
      VT_TRY(std::vector<std::int64_t> values,
             meta_.get_ints("tokenizer.ggml.precompiled_charsmap"));
      std::string bytes;
      bytes.reserve(values.size());
      for (std::int64_t value : values) bytes += static_cast<char>(value);
      VT_TRY(Charsmap map, Charsmap::parse(bytes));
      parts_->normalizer.add(norm::Compiled{std::move(map), false});
    }
    parts_->normalizer.add(norm::SpaceMarks{prefix, collapse});
    UnigramOptions options;
    options.byte_fallback = parts_->vocab.find_byte('\n') != kNoToken;
    options.unknown = parts_->unk.value_or(kNoToken);
    parts_->model = std::make_unique<Unigram>(
        parts_->vocab, std::vector<double>(scores.begin(), scores.end()), options, true);
    parts_->kind = "unigram";
    add_space_decoder(prefix);
    add_eos_ = true;
    return Ok{};
  }

  Status read_bert() {
    VT_RETURN_IF_ERROR(read_special(101, -1, 100, 0));
    VT_TRY(std::optional<std::int32_t> cls, special("cls_token_id", -1));
    VT_TRY(separator_, special("seperator_token_id", 102));
    if (meta_.has("tokenizer.ggml.separator_token_id")) {
      VT_TRY(separator_, special("separator_token_id", 102));
    }
    if (cls) parts_->bos = cls;
    VT_TRY(bool lowercase, meta_.get_bool("tokenizer.ggml.normalizer.lowercase", true));
    VT_TRY(bool accents, meta_.get_bool("tokenizer.ggml.normalizer.strip_accents", lowercase));
    parts_->normalizer.add(norm::Bert{true, true, accents, lowercase});
    CharSet spaces;
    spaces.add_space();
    parts_->pre_tokenizer.add_scanner(Scanner::each_of(spaces), SplitBehavior::kRemoved, false);
    VT_RETURN_IF_ERROR(parts_->pre_tokenizer.add_regex(R"([\p{P}!-/:-@\[-`{-~])",
                                                       SplitBehavior::kIsolated, false));
    constexpr std::size_t kLongestWord = 100;
    parts_->model = std::make_unique<WordPiece>(parts_->vocab, "##", kLongestWord,
                                                parts_->unk.value_or(kNoToken));
    parts_->kind = "WordPiece";
    parts_->decoder.add(dec::WordPiece{"##", true});
    add_bos_ = true;
    return Ok{};
  }

  // What goes in front of a text and behind it.
  Status read_around() {
    VT_TRY(bool bos, meta_.get_bool("tokenizer.ggml.add_bos_token", add_bos_));
    VT_TRY(bool eos, meta_.get_bool("tokenizer.ggml.add_eos_token", add_eos_));
    if (bos && parts_->bos) parts_->prefix.push_back(*parts_->bos);
    if (eos && parts_->eos) parts_->suffix.push_back(*parts_->eos);
    if (words_ && separator_) parts_->suffix = {*separator_};
    return Ok{};
  }

  Status add_tokens() {
    VT_TRY(std::string_view name, meta_.get_string("general.name", ""));
    std::string lower(name);
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    // The flag is not in the format; Phi-3's special tokens take the white space behind them.
    bool strip =
        lower.find("phi-3") != std::string::npos || lower.find("phi3") != std::string::npos;
    const Vocab& vocab = parts_->vocab;
    for (std::int32_t id = 0; id < vocab.size(); ++id) {
      bool special = vocab.is_special(id);
      if (!special && vocab.kind(id) != TokenKind::kUserDefined) continue;
      AddedToken token;
      token.id = id;
      token.content = vocab.content(id);
      if (token.content.empty()) continue;
      token.special = special;
      token.rstrip = strip && token.content != "<unk>" && token.content != "<s>" &&
                     token.content != "<|endoftext|>";
      parts_->added.add(std::move(token));
    }
    return Ok{};
  }

  const Meta& meta_;
  std::unique_ptr<TokenizerParts> parts_;
  bool words_ = false;
  bool add_bos_ = false, add_eos_ = false;
  std::optional<std::int32_t> separator_;
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> Tokenizer::from_gguf(const Meta& meta) {
  return GgufReader(meta).read();
}

}  // namespace vitrine
