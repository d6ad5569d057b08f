// tokenizer.json and tokenizer_config.json to a Tokenizer.
#include "tokenizer/load_json.h"

#include <algorithm>

#include "tokenizer/tokenizer.h"

namespace vitrine {
namespace {

std::string_view view(const json::string& text) { return {text.data(), text.size()}; }

// Ids may leave gaps after the model's own, but a small file must not ask for a large table.
std::int64_t id_limit(const Vocab& vocab, std::size_t added) {
  return 1'000'000 + vocab.size() + 4 * static_cast<std::int64_t>(added);
}

Status add_token(AddedToken token, std::int64_t limit, TokenizerParts& parts) {
  if (token.content.empty()) return Ok{};
  std::int32_t known = parts.vocab.find(token.content);
  if (known != kNoToken) token.id = known;
  if (token.id < 0 || token.id >= limit)
    return make_error(ErrorCode::kMalformed,
                      "tokenizer.json: added token \"{}\" has id {}; it must be in 0..{}",
                      token.content.substr(0, 80), token.id, limit - 1);
  TokenKind kind = token.special ? TokenKind::kControl : TokenKind::kUserDefined;
  if (known != kNoToken)
    parts.vocab.set_kind(known, kind);
  else
    parts.vocab.set(token.id, token.content, kind);
  parts.added.add(std::move(token));
  return Ok{};
}

Result<AddedToken> read_added_token(const json::object& object, std::string_view where) {
  AddedToken token;
  VT_TRY(token.content, json_string(object, "content", where));
  VT_TRY(token.special, json_bool(object, "special", where, false));
  VT_TRY(token.lstrip, json_bool(object, "lstrip", where, false));
  VT_TRY(token.rstrip, json_bool(object, "rstrip", where, false));
  VT_TRY(token.single_word, json_bool(object, "single_word", where, false));
  VT_TRY(token.normalized, json_bool(object, "normalized", where, !token.special));
  return token;
}

Result<std::int32_t> narrow_id(std::int64_t id, std::string_view where) {
  if (id < 0 || id > INT32_MAX)
    return make_error(ErrorCode::kMalformed, "tokenizer.json: {} has id {}", where, id);
  return static_cast<std::int32_t>(id);
}

Status read_added_tokens(const json::object& root, TokenizerParts& parts) {
  VT_TRY(const json::array* list, json_array(root, "added_tokens", "the document"));
  if (list == nullptr) return Ok{};
  std::int64_t limit = id_limit(parts.vocab, list->size());
  for (const json::value& item : *list) {
    if (!item.is_object())
      return make_error(ErrorCode::kMalformed, "tokenizer.json: added_tokens must hold objects");
    VT_TRY(AddedToken token, read_added_token(item.get_object(), "added_tokens"));
    VT_TRY(std::int64_t id, json_int(item.get_object(), "id", "added_tokens", -1));
    VT_TRY(token.id, narrow_id(id, "an added token"));
    VT_RETURN_IF_ERROR(add_token(std::move(token), limit, parts));
  }
  return Ok{};
}

// Tokens that only tokenizer_config.json names.
Status read_config_tokens(const json::object& config, TokenizerParts& parts) {
  VT_TRY(const json::object* decoder, json_object(config, "added_tokens_decoder", "the config"));
  if (decoder == nullptr) return Ok{};
  std::int64_t limit = id_limit(parts.vocab, decoder->size());
  for (const auto& [key, value] : *decoder) {
    if (!value.is_object()) continue;
    VT_TRY(AddedToken token, read_added_token(value.get_object(), "added_tokens_decoder"));
    std::int32_t known = parts.vocab.find(token.content);
    TokenKind kind = known == kNoToken ? TokenKind::kMissing : parts.vocab.kind(known);
    bool listed = kind == TokenKind::kControl || kind == TokenKind::kUserDefined;
    if (listed) continue;
    std::int64_t id = -1;
    if (key.size() < 10 && !key.empty() &&
        std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; }))
      id = std::stoll(std::string(key));
    VT_TRY(token.id, narrow_id(id, "a token of added_tokens_decoder"));
    VT_RETURN_IF_ERROR(add_token(std::move(token), limit, parts));
  }
  return Ok{};
}

class PostProcessor {
 public:
  PostProcessor(const Vocab& vocab, std::vector<std::int32_t>& prefix,
                std::vector<std::int32_t>& suffix)
      : vocab_(vocab), prefix_(prefix), suffix_(suffix) {}

  Status read(const json::object& object) {
    VT_TRY(std::string type, json_string(object, "type", "post_processor"));
    if (type == "ByteLevel") return Ok{};
    if (type == "TemplateProcessing") return read_template(object);
    if (type == "BertProcessing" || type == "RobertaProcessing") return read_pair(object);
    if (type == "Sequence") {
      VT_TRY(const json::array* list, json_array(object, "processors", "post_processor"));
      if (list == nullptr) return Ok{};
      for (const json::value& item : *list)
        if (item.is_object()) VT_RETURN_IF_ERROR(read(item.get_object()));
      return Ok{};
    }
    return make_error(ErrorCode::kUnsupported,
                      "tokenizer.json: post_processor of type \"{}\" is not supported", type);
  }

 private:
  Error bad(std::string_view what) {
    return make_error(ErrorCode::kMalformed, "tokenizer.json: post_processor: {}", what);
  }

  Status wrap(std::vector<std::int32_t> before, const std::vector<std::int32_t>& after) {
    if (before.size() + after.size() + prefix_.size() + suffix_.size() > 1024)
      return bad("more than 1024 special tokens around a text");
    for (std::span<const std::int32_t> ids :
         {std::span<const std::int32_t>(before), std::span<const std::int32_t>(after)})
      for (std::int32_t id : ids)
        if (!vocab_.has(id)) return bad(fmt::format("id {} is not in the vocabulary", id));
    before.insert(before.end(), prefix_.begin(), prefix_.end());
    prefix_ = std::move(before);
    suffix_.insert(suffix_.end(), after.begin(), after.end());
    return Ok{};
  }

  // "sep" and "cls" are each ["[SEP]", 102].
  Status read_pair(const json::object& object) {
    std::int32_t ids[2];
    for (int i = 0; i < 2; ++i) {
      VT_TRY(const json::array* pair, json_array(object, i == 0 ? "cls" : "sep", "post_processor"));
      if (pair == nullptr || pair->size() != 2 || !(*pair)[1].is_int64())
        return bad("cls and sep must each be a token and its id");
      VT_TRY(ids[i], narrow_id((*pair)[1].get_int64(), "post_processor"));
    }
    return wrap({ids[0]}, {ids[1]});
  }

  Status append_special(const json::object& tokens, const json::object& piece,
                        std::vector<std::int32_t>& out) {
    VT_TRY(std::string name, json_string(piece, "id", "post_processor.single"));
    VT_TRY(const json::object* token, json_object(tokens, name, "post_processor.special_tokens"));
    if (token == nullptr) return bad(fmt::format("\"{}\" is not among its special_tokens", name));
    VT_TRY(const json::array* ids, json_array(*token, "ids", "post_processor.special_tokens"));
    if (ids == nullptr) return bad(fmt::format("\"{}\" has no ids", name));
    for (const json::value& id : *ids) {
      if (!id.is_int64()) return bad("ids must be integers");
      VT_TRY(std::int32_t narrow, narrow_id(id.get_int64(), "post_processor"));
      out.push_back(narrow);
    }
    return Ok{};
  }

  Status read_template(const json::object& object) {
    VT_TRY(const json::array* pieces, json_array(object, "single", "post_processor"));
    VT_TRY(const json::object* tokens, json_object(object, "special_tokens", "post_processor"));
    if (pieces == nullptr) return bad("the template \"single\" is missing");
    static const json::object kNoTokens;
    if (tokens == nullptr) tokens = &kNoTokens;
    std::vector<std::int32_t> before, after;
    int texts = 0;
    for (const json::value& item : *pieces) {
      if (!item.is_object()) return bad("the template \"single\" must hold objects");
      VT_TRY(const json::object* special,
             json_object(item.get_object(), "SpecialToken", "post_processor.single"));
      if (special == nullptr)
        ++texts;
      else
        VT_RETURN_IF_ERROR(append_special(*tokens, *special, texts == 0 ? before : after));
    }
    if (texts != 1) return bad("the template \"single\" must hold the text once");
    return wrap(std::move(before), after);
  }

  const Vocab& vocab_;
  std::vector<std::int32_t>& prefix_;
  std::vector<std::int32_t>& suffix_;
};

// A token that the config names: "<s>" or {"content": "<s>", ...}.
std::optional<std::int32_t> config_token(const json::object& config, std::string_view key,
                                         const Vocab& vocab) {
  const json::value* value = config.if_contains(key);
  if (value != nullptr && value->is_object()) value = value->get_object().if_contains("content");
  if (value == nullptr || !value->is_string()) return std::nullopt;
  std::int32_t id = vocab.find(view(value->get_string()));
  if (id == kNoToken) return std::nullopt;
  return id;
}

// Without a config, the usual names among the special tokens.
std::optional<std::int32_t> usual_token(const Vocab& vocab,
                                        std::initializer_list<std::string_view> names) {
  for (std::string_view name : names) {
    std::int32_t id = vocab.find(name);
    if (id != kNoToken && vocab.is_special(id)) return id;
  }
  return std::nullopt;
}

void set_special_ids(const json::object& config, TokenizerParts& parts) {
  parts.bos = config_token(config, "bos_token", parts.vocab);
  parts.eos = config_token(config, "eos_token", parts.vocab);
  parts.pad = config_token(config, "pad_token", parts.vocab);
  if (auto unk = config_token(config, "unk_token", parts.vocab)) parts.unk = unk;
  if (!config.empty()) return;
  parts.bos = usual_token(parts.vocab, {"<s>", "<|begin_of_text|>", "<bos>", "<|bos|>",
                                        "<|startoftext|>", "<|endoftext|>"});
  parts.eos = usual_token(
      parts.vocab, {"</s>", "<|end_of_text|>", "<eos>", "<|eos|>", "<|endoftext|>", "<|im_end|>"});
  parts.pad = usual_token(parts.vocab, {"<pad>", "[PAD]", "<|pad|>"});
}

// transformers rebuilds the template of Llama-like tokenizers from add_bos_token and add_eos_token;
// for others these count only where tokenizer.json adds nothing itself.
Status apply_add_rules(const json::object& config, TokenizerParts& parts) {
  VT_TRY(std::string name, json_string(config, "tokenizer_class", "the config", ""));
  bool llama_like = name.starts_with("Llama") || name.starts_with("CodeLlama") ||
                    name.starts_with("Gemma") || name.starts_with("Cohere");
  bool bare = parts.prefix.empty() && parts.suffix.empty();
  bool says_bos = config.contains("add_bos_token"), says_eos = config.contains("add_eos_token");
  if (!bare && !(llama_like && (says_bos || says_eos))) return Ok{};
  VT_TRY(bool bos, json_bool(config, "add_bos_token", "the config", llama_like));
  VT_TRY(bool eos, json_bool(config, "add_eos_token", "the config", false));
  parts.prefix.clear();
  parts.suffix.clear();
  if (bos && parts.bos) parts.prefix.push_back(*parts.bos);
  if (eos && parts.eos) parts.suffix.push_back(*parts.eos);
  return Ok{};
}

Status read_chains(const json::object& root, TokenizerParts& parts, bool& byte_level) {
  VT_TRY(const json::object* normalizer, json_object(root, "normalizer", "the document"));
  VT_TRY(const json::object* words, json_object(root, "pre_tokenizer", "the document"));
  VT_TRY(const json::object* decoder, json_object(root, "decoder", "the document"));
  if (normalizer != nullptr) VT_RETURN_IF_ERROR(read_normalizer(*normalizer, parts.normalizer));
  if (words != nullptr)
    VT_RETURN_IF_ERROR(read_pre_tokenizer(*words, parts.pre_tokenizer, byte_level));
  if (decoder != nullptr)
    VT_RETURN_IF_ERROR(read_decoder(*decoder, parts.decoder));
  else
    parts.decoder.add(dec::JoinWithSpaces{});
  return Ok{};
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> Tokenizer::from_json(std::string_view tokenizer_json,
                                                        std::string_view tokenizer_config_json) {
  VT_TRY(json::value document, parse_json(tokenizer_json, "tokenizer.json"));
  if (!document.is_object())
    return make_error(ErrorCode::kMalformed, "tokenizer.json: the document must be an object");
  json::value config_document = json::object();
  if (!tokenizer_config_json.empty()) {
    VT_TRY(config_document, parse_json(tokenizer_config_json, "tokenizer_config.json"));
    if (!config_document.is_object())
      return make_error(ErrorCode::kMalformed,
                        "tokenizer_config.json: the document must be an object");
  }
  const json::object& root = document.get_object();
  const json::object& config = config_document.get_object();
  VT_TRY(const json::object* model, json_object(root, "model", "the document"));
  if (model == nullptr)
    return make_error(ErrorCode::kMalformed, "tokenizer.json: \"model\" is missing");

  auto parts = std::make_unique<TokenizerParts>();
  std::vector<double> scores;
  bool byte_level = false;
  VT_RETURN_IF_ERROR(read_vocab(*model, parts->vocab, scores));
  VT_RETURN_IF_ERROR(read_added_tokens(root, *parts));
  VT_RETURN_IF_ERROR(read_config_tokens(config, *parts));
  VT_RETURN_IF_ERROR(read_chains(root, *parts, byte_level));
  VT_RETURN_IF_ERROR(read_model(*model, scores, byte_level, *parts));
  VT_TRY(const json::object* processor, json_object(root, "post_processor", "the document"));
  if (processor != nullptr)
    VT_RETURN_IF_ERROR(PostProcessor(parts->vocab, parts->prefix, parts->suffix).read(*processor));
  set_special_ids(config, *parts);
  VT_RETURN_IF_ERROR(apply_add_rules(config, *parts));
  VT_RETURN_IF_ERROR(parts->added.build(parts->normalizer));
  return std::make_unique<Tokenizer>(std::move(parts));
}

}  // namespace vitrine
