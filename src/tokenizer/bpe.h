// Byte-pair encoding: by a list of ranked merges (Bpe) or by token scores (ScoreBpe).
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "tokenizer/hash.h"
#include "tokenizer/model.h"
#include "tokenizer/vocab.h"

namespace vitrine {

// GPT-2's alphabet: every byte as a printable character.
std::string byte_level_encode(std::string_view bytes);
void byte_level_append(std::string_view bytes, std::string& out);
// The inverse, appended; false (and nothing appended) when a character is outside the alphabet.
bool byte_level_decode(std::string_view text, std::string& out);

struct BpeOptions {
  bool byte_level = false;     // symbols are bytes, spelt in GPT-2's alphabet in the vocabulary
  bool ignore_merges = false;  // a word that is a token is taken whole
  bool byte_fallback = false;  // a character that is no token becomes its byte tokens
  bool fuse_unknown = false;
  std::int32_t unknown = kNoToken;       // kNoToken: what is unknown is dropped
  std::string word_prefix, word_suffix;  // marks on symbols inside a word, and on its last symbol
};

class Bpe : public WordModel {
 public:
  Bpe(const Vocab& vocab, BpeOptions options);
  // Adds the merge of two tokens; false when one of the three is not in the vocabulary.
  bool add_merge(std::string_view left, std::string_view right, std::uint32_t rank, bool replace);
  const BpeOptions& options() const { return options_; }

  void encode(std::string_view word, WordScratch& scratch,
              std::vector<std::int32_t>& out) const override;
  void explain(std::string_view word, bool steps, std::vector<ExplainedWord>& out) const override;

 private:
  struct Merge {
    std::uint32_t rank;
    std::int32_t token;
  };
  void encode_word(std::string_view word, WordScratch& scratch,
                   std::vector<std::int32_t>& out) const;
  // True (and its id): the word is taken whole.
  bool take_whole(std::string_view word, WordScratch& scratch, std::int32_t& id) const;
  void seed(std::string_view word, WordScratch& scratch) const;
  void pair(Symbol& left, const Symbol& right) const;
  void explain_word(std::string_view word, std::size_t base, bool steps,
                    std::vector<ExplainedWord>& out) const;
  void seed_bytes(std::string_view word, std::vector<Symbol>& symbols) const;
  void seed_chars(std::string_view word, WordScratch& scratch) const;
  bool push_bytes(std::string_view text, std::uint32_t at, std::vector<Symbol>& symbols) const;

  const Vocab& vocab_;
  BpeOptions options_;
  bool by_words_;
  std::array<std::int32_t, 256> bytes_;  // token of each byte, in the spelling that options say
  FlatMap<Merge> merges_;                // (left id, right id) -> rank, token
};

// SentencePiece's BPE: of all neighbours that form a token, the one with the highest score merges
// first. Characters that are no token become byte tokens, or the unknown token.
class ScoreBpe : public WordModel {
 public:
  ScoreBpe(const Vocab& vocab, const std::vector<float>& scores, std::int32_t unknown);
  void encode(std::string_view word, WordScratch& scratch,
              std::vector<std::int32_t>& out) const override;
  void explain(std::string_view word, bool steps, std::vector<ExplainedWord>& out) const override;

 private:
  void encode_word(std::string_view word, WordScratch& scratch,
                   std::vector<std::int32_t>& out) const;
  void seed(std::string_view word, std::vector<Symbol>& symbols) const;
  void pair(std::string_view word, Symbol& left, const Symbol& right) const;
  void explain_word(std::string_view word, std::size_t base, bool steps,
                    std::vector<ExplainedWord>& out) const;
  // Calls add(token, offset) for the tokens of bytes that are none together.
  template <typename Add>
  void spell(std::string_view bytes, Add&& add) const;

  const Vocab& vocab_;
  std::vector<std::uint32_t> ranks_;  // by id: lower is a higher score
  std::array<std::int32_t, 256> bytes_;
  std::int32_t unknown_;
  bool by_words_;
};

}  // namespace vitrine
