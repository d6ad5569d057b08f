// Text to token ids and back, for every tokenizer a model file can bring.
//
// One pipeline serves all kinds: added tokens are cut out of the text, the rest is normalized, cut
// into words (pre-tokenizer) and each word is encoded by the model (BPE, unigram, WordPiece). The
// parts come from tokenizer.json or from GGUF's tokenizer.ggml.* keys. Immutable after loading,
// except for caches of words that each encoding borrows; every method may be called from any
// thread. Time and memory are linear in the text for any input.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/model_file.h"

namespace vitrine {

struct TextExplanation;
struct TokenizerParts;
class WordCaches;

struct EncodeOptions {
  bool add_special = true;     // BOS, EOS, [CLS] as the tokenizer's own rules say
  bool parse_special = false;  // text that spells a special token becomes that token
};

// Bytes [begin, end) of a text.
struct ByteSpan {
  std::size_t begin, end;
};

class Tokenizer {
 public:
  // What its caches of words keep between encodings, at most.
  static constexpr std::size_t kCacheBytes = std::size_t{16} << 20;

  // kNotFound when the model has no tokenizer; kMalformed and kUnsupported name what is wrong.
  static Result<std::unique_ptr<Tokenizer>> load(const ModelFile& file);
  // Hugging Face's tokenizer.json; tokenizer_config.json may be empty.
  static Result<std::unique_ptr<Tokenizer>> from_json(std::string_view tokenizer_json,
                                                      std::string_view tokenizer_config_json);
  // GGUF's tokenizer.ggml.* keys.
  static Result<std::unique_ptr<Tokenizer>> from_gguf(const Meta& meta);

  explicit Tokenizer(std::unique_ptr<TokenizerParts> parts);
  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Any bytes: what is not UTF-8 counts as U+FFFD. Added tokens that are not special always match.
  std::vector<std::int32_t> encode(std::string_view text, EncodeOptions options = {}) const;
  // A text made of a template's markers and of the caller's words. `words` (ascending, disjoint)
  // never become special tokens, even if they spell one; the rest is read as with parse_special.
  // Words and markers are encoded as one text, not separately.
  std::vector<std::int32_t> encode(std::string_view text, EncodeOptions options,
                                   std::span<const ByteSpan> words) const;
  // What `encode` did, word by word and merge by merge. Slow, and for texts of up to
  // kMostExplained bytes: kTooLarge above. explanation.h has what it tells.
  static constexpr std::size_t kMostExplained = std::size_t{64} << 10;
  Result<TextExplanation> explain(std::string_view text, EncodeOptions options = {}) const;
  // Only which bytes became which tokens (`tokens` and `sources`), for the second form of `encode`
  // and up to kMostPlaced bytes.
  static constexpr std::size_t kMostPlaced = std::size_t{1} << 20;
  Result<TextExplanation> place(std::string_view text, EncodeOptions options,
                                std::span<const ByteSpan> words) const;
  // The text of a whole sequence, always valid UTF-8. Ids outside the vocabulary are skipped.
  std::string decode(std::span<const std::int32_t> ids, bool skip_special = false) const;
  // One token for display: its raw bytes (maybe part of a character), special tokens by their
  // names. Empty for an id outside the vocabulary.
  std::string piece(std::int32_t id) const;

  std::int32_t vocab_size() const;  // highest id + 1
  std::optional<std::int32_t> bos() const;
  std::optional<std::int32_t> eos() const;
  std::optional<std::int32_t> unk() const;
  std::optional<std::int32_t> pad() const;
  bool is_special(std::int32_t id) const;
  // "normal", "unknown", "control", "user defined", "unused", "byte"; "missing" where there is none.
  const char* kind_of(std::int32_t id) const;
  // The id of a token by its content as the file spells it ("<|im_end|>", "Ġthe", "▁the").
  std::optional<std::int32_t> find(std::string_view token_content) const;
  // "byte-level BPE", "SentencePiece BPE", "unigram", "WordPiece", "BPE" or "word level".
  std::string kind() const;

 private:
  friend class StreamDecoder;
  std::unique_ptr<TokenizerParts> parts_;
  std::unique_ptr<WordCaches> caches_;  // locks itself
};

}  // namespace vitrine
