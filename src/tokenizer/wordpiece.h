// WordPiece: the longest token at each place of a word, or the unknown token for the whole word.
// WordLevel: a word is a token or unknown.
#pragma once

#include <string>

#include "tokenizer/model.h"
#include "tokenizer/trie.h"
#include "tokenizer/vocab.h"

namespace vitrine {

class WordPiece : public WordModel {
 public:
  // Tokens that continue a word carry `prefix` ("##"). Words of more than `longest_word` characters
  // are unknown.
  WordPiece(const Vocab& vocab, const std::string& prefix, std::size_t longest_word,
            std::int32_t unknown);
  void encode(std::string_view word, WordScratch& scratch,
              std::vector<std::int32_t>& out) const override;
  void explain(std::string_view word, bool steps, std::vector<ExplainedWord>& out) const override;

 private:
  // Calls matched(token, begin, end) for the longest token at each place. False: at some place there
  // is none, or the word is too long.
  template <typename Match>
  bool match(std::string_view word, Match&& matched) const;

  Trie starts_, continuations_;
  std::size_t longest_word_;
  std::int32_t unknown_;
};

class WordLevel : public WordModel {
 public:
  WordLevel(const Vocab& vocab, std::int32_t unknown) : vocab_(vocab), unknown_(unknown) {}
  void encode(std::string_view word, WordScratch&, std::vector<std::int32_t>& out) const override;
  void explain(std::string_view word, bool steps, std::vector<ExplainedWord>& out) const override;

 private:
  const Vocab& vocab_;
  std::int32_t unknown_;
};

}  // namespace vitrine
