// The "model" block of tokenizer.json.
#include "tokenizer/bpe.h"
#include "tokenizer/load_json.h"
#include "tokenizer/unigram.h"
#include "tokenizer/wordpiece.h"

namespace vitrine {
namespace {

// Ids may have gaps, but a small file must not ask for a large table.
Status check_id(std::int64_t id, std::size_t count, std::string_view token) {
  std::int64_t limit = 1'000'000 + 4 * static_cast<std::int64_t>(count);
  if (id >= 0 && id < limit) return Ok{};
  return make_error(ErrorCode::kMalformed,
                    "tokenizer.json: token \"{}\" has id {}; with {} tokens it must be in 0..{}",
                    token.substr(0, 80), id, count, limit - 1);
}

std::string_view view(const json::string& text) { return {text.data(), text.size()}; }

// Files from before the field existed are told apart by what they hold.
Result<std::string> model_type(const json::object& model) {
  VT_TRY(std::string type, json_string(model, "type", "model", ""));
  if (!type.empty()) return type;
  const json::value* vocab = model.if_contains("vocab");
  if (vocab != nullptr && vocab->is_array()) return std::string("Unigram");
  if (model.contains("merges")) return std::string("BPE");
  if (model.contains("max_input_chars_per_word")) return std::string("WordPiece");
  return std::string("WordLevel");
}

Status read_scored_vocab(const json::array& list, Vocab& vocab, std::vector<double>& scores) {
  for (const json::value& item : list) {
    const json::array* pair = item.if_array();
    if (pair == nullptr || pair->size() != 2 || !(*pair)[0].is_string() || !(*pair)[1].is_number())
      return make_error(ErrorCode::kMalformed,
                        "tokenizer.json: model.vocab[{}] must be a token and its score",
                        scores.size());
    vocab.set(static_cast<std::int32_t>(scores.size()), view((*pair)[0].get_string()),
              TokenKind::kNormal);
    scores.push_back((*pair)[1].to_number<double>());
  }
  return Ok{};
}

Result<std::int32_t> find_unknown(const json::object& model, const Vocab& vocab,
                                  std::string_view missing) {
  VT_TRY(std::string token, json_string(model, "unk_token", "model", missing));
  return token.empty() ? kNoToken : vocab.find(token);
}

// A merge is ["a", "b"] or "a b".
bool split_merge(const json::value& item, std::string_view& left, std::string_view& right) {
  if (const json::array* pair = item.if_array()) {
    if (pair->size() != 2 || !(*pair)[0].is_string() || !(*pair)[1].is_string()) return false;
    left = view((*pair)[0].get_string());
    right = view((*pair)[1].get_string());
    return true;
  }
  if (!item.is_string()) return false;
  std::string_view text = view(item.get_string());
  std::size_t space = text.find(' ');
  if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos)
    return false;
  left = text.substr(0, space);
  right = text.substr(space + 1);
  return true;
}

Status read_bpe(const json::object& model, bool byte_level, TokenizerParts& parts) {
  BpeOptions options;
  options.byte_level = byte_level;
  VT_TRY(options.ignore_merges, json_bool(model, "ignore_merges", "model", false));
  VT_TRY(options.byte_fallback, json_bool(model, "byte_fallback", "model", false));
  VT_TRY(options.fuse_unknown, json_bool(model, "fuse_unk", "model", false));
  VT_TRY(options.word_prefix, json_string(model, "continuing_subword_prefix", "model", ""));
  VT_TRY(options.word_suffix, json_string(model, "end_of_word_suffix", "model", ""));
  VT_TRY(options.unknown, find_unknown(model, parts.vocab, ""));
  if (options.unknown != kNoToken) parts.unk = options.unknown;
  parts.kind = byte_level ? "byte-level BPE" : options.byte_fallback ? "SentencePiece BPE" : "BPE";

  auto bpe = std::make_unique<Bpe>(parts.vocab, options);
  VT_TRY(const json::array* merges, json_array(model, "merges", "model"));
  std::uint32_t rank = 0;
  if (merges != nullptr)
    for (const json::value& item : *merges) {
      std::string_view left, right;
      if (!split_merge(item, left, right))
        return make_error(ErrorCode::kMalformed,
                          "tokenizer.json: model.merges[{}] must be two tokens", rank);
      if (!bpe->add_merge(left, right, rank, true))
        return make_error(
            ErrorCode::kMalformed,
            "tokenizer.json: model.merges[{}] joins \"{}\" and \"{}\": one of them or "
            "the result is not in the vocabulary",
            rank, left.substr(0, 80), right.substr(0, 80));
      ++rank;
    }
  parts.model = std::move(bpe);
  return Ok{};
}

Status read_unigram(const json::object& model, const std::vector<double>& scores,
                    TokenizerParts& parts) {
  UnigramOptions options;
  VT_TRY(options.byte_fallback, json_bool(model, "byte_fallback", "model", false));
  VT_TRY(std::int64_t unknown, json_int(model, "unk_id", "model", kNoToken));
  if (unknown < kNoToken || unknown >= static_cast<std::int64_t>(scores.size()))
    return make_error(ErrorCode::kMalformed,
                      "tokenizer.json: model.unk_id is {}; the vocabulary has {} tokens", unknown,
                      scores.size());
  options.unknown = static_cast<std::int32_t>(unknown);
  if (options.unknown != kNoToken) parts.unk = options.unknown;
  parts.kind = "unigram";
  parts.model = std::make_unique<Unigram>(parts.vocab, scores, options, false);
  return Ok{};
}

Status read_wordpiece(const json::object& model, TokenizerParts& parts) {
  VT_TRY(std::string prefix, json_string(model, "continuing_subword_prefix", "model", "##"));
  VT_TRY(std::int64_t longest, json_int(model, "max_input_chars_per_word", "model", 100));
  if (longest < 0)
    return make_error(
        ErrorCode::kMalformed,
        "tokenizer.json: model.max_input_chars_per_word is {}; it must not be negative", longest);
  VT_TRY(std::int32_t unknown, find_unknown(model, parts.vocab, "[UNK]"));
  if (unknown != kNoToken) parts.unk = unknown;
  parts.kind = "WordPiece";
  parts.model =
      std::make_unique<WordPiece>(parts.vocab, prefix, static_cast<std::size_t>(longest), unknown);
  return Ok{};
}

}  // namespace

Status read_vocab(const json::object& model, Vocab& vocab, std::vector<double>& scores) {
  VT_TRY(std::string type, model_type(model));
  if (type == "Unigram") {
    VT_TRY(const json::array* list, json_array(model, "vocab", "model"));
    if (list != nullptr) return read_scored_vocab(*list, vocab, scores);
  }
  VT_TRY(const json::object* tokens, json_object(model, "vocab", "model"));
  if (tokens == nullptr)
    return make_error(ErrorCode::kMalformed, "tokenizer.json: model.vocab is missing");
  for (const auto& [token, id] : *tokens) {
    std::string_view content(token.data(), token.size());
    if (!id.is_int64())
      return make_error(ErrorCode::kMalformed,
                        "tokenizer.json: the id of token \"{}\" must be an integer",
                        content.substr(0, 80));
    VT_RETURN_IF_ERROR(check_id(id.get_int64(), tokens->size(), content));
    vocab.set(static_cast<std::int32_t>(id.get_int64()), content, TokenKind::kNormal);
  }
  return Ok{};
}

Status read_model(const json::object& model, const std::vector<double>& scores, bool byte_level,
                  TokenizerParts& parts) {
  VT_TRY(std::string type, model_type(model));
  if (type != "BPE" && byte_level) parts.pre_tokenizer.add_byte_level();
  if (type == "BPE") return read_bpe(model, byte_level, parts);
  if (type == "Unigram") return read_unigram(model, scores, parts);
  if (type == "WordPiece") return read_wordpiece(model, parts);
  if (type == "WordLevel") {
    VT_TRY(std::int32_t unknown, find_unknown(model, parts.vocab, "<unk>"));
    if (unknown != kNoToken) parts.unk = unknown;
    parts.kind = "word level";
    parts.model = std::make_unique<WordLevel>(parts.vocab, unknown);
    return Ok{};
  }
  return make_error(ErrorCode::kUnsupported,
                    "tokenizer.json: a model of type \"{}\" is not supported; BPE, Unigram, "
                    "WordPiece and WordLevel are",
                    type);
}

}  // namespace vitrine
