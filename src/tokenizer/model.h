// A tokenizer model: encodes one word of the pre-tokenizer (or a whole text) into token ids.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vitrine {

struct ExplainedWord;

// One symbol of a BPE merge: a run of the word's bytes, linked to its neighbours.
struct Symbol {
  std::uint32_t begin, length;
  std::int32_t id;          // kNoToken: bytes that are no token
  std::int32_t prev, next;  // -1 at the ends
  std::uint32_t rank;       // of merging with `next`; kNoRank when that is no token
  std::int32_t merged;      // the token that merging with `next` gives
};

// Buffers that one encode() call reuses from word to word.
struct WordScratch {
  std::vector<Symbol> symbols;
  std::vector<std::uint64_t> heap;
  std::string text;
};

// Implementations keep a reference to the Vocab of the same tokenizer and are immutable.
class WordModel {
 public:
  virtual ~WordModel() = default;
  // Appends the ids of `word`, valid UTF-8 of less than 2^31 bytes.
  virtual void encode(std::string_view word, WordScratch& scratch,
                      std::vector<std::int32_t>& out) const = 0;
  // The same word, with what happened to it: one entry, or several where the model cuts it further.
  // Their places count from the beginning of `word`. Without `steps` only the tokens are told.
  virtual void explain(std::string_view word, bool steps,
                       std::vector<ExplainedWord>& out) const = 0;
};

}  // namespace vitrine
