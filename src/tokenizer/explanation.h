// How a text became its tokens, in every detail: what Tokenizer::explain returns.
//
// Places are bytes of `normalized`, the text that the words are cut from: the caller's, as the
// normalizer and those steps of the pre-tokenizer left it that rewrite (space marks, a space in
// front). So normalized[begin, end) of a word is exactly what the model encoded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vitrine {

// Bytes [begin, end) with a token; -1: they are none (yet).
struct PlacedToken {
  std::size_t begin, end;
  std::int32_t id;
};

// Two neighbours of a word became one. Each is named by the place of its first start symbol.
struct DoneMerge {
  std::uint32_t left, right;
  double rank;  // BPE: the merge's rank, lowest first. SentencePiece: the token's score, highest
                // first.
  std::int32_t id;
};

// A token that could end where it does, with the best way to its beginning.
struct TokenCandidate {
  std::size_t begin, end;
  std::int32_t id;      // -1: a character that no token covers
  double score, total;  // of the token; of the whole way to its end
  bool chosen;          // part of the best way through the word
};

enum class WordWay {
  kAdded,    // an added token, cut out of the text; not encoded
  kWhole,    // the word is a token, and the tokenizer takes those whole
  kMerges,   // `start`, then `merges` in the order they were done
  kLattice,  // the best of all ways through `candidates`
  kMatches,  // the longest token at each place: `start` has them in their order
  kUnknown,  // no such matches (`start` has those before), or a word that is too long
};
const char* word_way_name(WordWay way);

struct ExplainedWord {
  std::size_t begin = 0, end = 0;
  WordWay way = WordWay::kMerges;
  std::vector<PlacedToken> start;
  std::vector<DoneMerge> merges;
  std::vector<TokenCandidate> candidates;  // by their ends; the best kMostCandidates of each
  std::size_t left_out = 0;                // candidates that were not kept
  std::vector<PlacedToken> tokens;         // what the word became

  static constexpr std::size_t kMostCandidates = 8;
};

struct TextExplanation {
  std::string normalized;
  std::vector<std::int32_t> prefix, suffix;  // BOS, EOS and their like, around the text
  std::vector<ExplainedWord> words;
  // Where each token of `words`, in order, comes from: bytes of the text itself. Exact where the
  // text was not rewritten and at added tokens; else to the nearest character that both texts have.
  std::vector<PlacedToken> sources;

  // Exactly what Tokenizer::encode returns.
  std::vector<std::int32_t> ids() const;
};

}  // namespace vitrine
