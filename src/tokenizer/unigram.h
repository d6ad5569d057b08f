// Unigram language model: the segmentation with the highest sum of token scores (Viterbi).
#pragma once

#include <array>
#include <vector>

#include "tokenizer/model.h"
#include "tokenizer/trie.h"
#include "tokenizer/vocab.h"

namespace vitrine {

struct UnigramOptions {
  bool byte_fallback = false;       // unknown text becomes byte tokens
  std::int32_t unknown = kNoToken;  // kNoToken: what is unknown is dropped
};

class Unigram : public WordModel {
 public:
  // `scores` by id; tokens of kind kUserDefined count as score 0 when `user_defined_free`.
  Unigram(const Vocab& vocab, const std::vector<double>& scores, UnigramOptions options,
          bool user_defined_free);
  void encode(std::string_view word, WordScratch& scratch,
              std::vector<std::int32_t>& out) const override;
  void explain(std::string_view word, bool steps, std::vector<ExplainedWord>& out) const override;

 private:
  // Calls add(token, from, to) for the tokens of text that no token covers.
  template <typename Add>
  void spell(std::string_view text, Add&& add) const;
  template <typename Offered, typename Add>
  void search(std::string_view word, Offered&& offered, Add&& add) const;

  UnigramOptions options_;
  Trie trie_;
  std::vector<double> scores_;
  double unknown_score_;
  std::array<std::int32_t, 256> bytes_;
  bool has_bytes_ = true;
};

}  // namespace vitrine
