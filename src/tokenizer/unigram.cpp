#include "tokenizer/unigram.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/utf8.h"
#include "tokenizer/explanation.h"

namespace vitrine {
namespace {

// How much worse than the worst token an unknown character is.
constexpr double kUnknownPenalty = 10.0;

Trie make_trie(const Vocab& vocab) {
  std::vector<std::pair<std::string_view, std::int32_t>> keys;
  for (std::int32_t id = 0; id < vocab.size(); ++id)
    if (vocab.has(id) && !vocab.is_special(id) && vocab.kind(id) != TokenKind::kByte)
      keys.emplace_back(vocab.content(id), id);
  return Trie(std::move(keys));
}

}  // namespace

Unigram::Unigram(const Vocab& vocab, const std::vector<double>& scores, UnigramOptions options,
                 bool user_defined_free)
    : options_(options), trie_(make_trie(vocab)), scores_(scores) {
  scores_.resize(static_cast<std::size_t>(vocab.size()), 0.0);
  double worst = std::numeric_limits<double>::infinity();
  for (std::int32_t id = 0; id < vocab.size(); ++id) {
    double& score = scores_[static_cast<std::size_t>(id)];
    if (!std::isfinite(score)) score = -1e9;
    if (user_defined_free && vocab.kind(id) == TokenKind::kUserDefined) score = 0;
    if (vocab.has(id)) worst = std::min(worst, score);
  }
  unknown_score_ = (std::isfinite(worst) ? worst : 0) - kUnknownPenalty;
  for (int b = 0; b < 256; ++b) {
    bytes_[b] = vocab.find_byte(static_cast<unsigned char>(b));
    has_bytes_ = has_bytes_ && bytes_[b] != kNoToken;
  }
}

template <typename Add>
void Unigram::spell(std::string_view text, Add&& add) const {
  if (options_.byte_fallback && has_bytes_) {
    for (std::size_t i = 0; i < text.size(); ++i)
      add(bytes_[static_cast<unsigned char>(text[i])], i, i + 1);
  } else if (options_.unknown != kNoToken) {
    add(options_.unknown, 0, text.size());
  }
}

// `offered(from, to, token, score, total)` is called for every token at every place, by their
// beginnings. Calls add(token, begin, end) for the tokens of the best way.
template <typename Offered, typename Add>
void Unigram::search(std::string_view word, Offered&& offered, Add&& add) const {
  // The best segmentation that ends at each byte: its score, last token and where that starts.
  struct Best {
    double score = -std::numeric_limits<double>::infinity();
    std::int32_t token = kNoToken;  // kNoToken: one unknown character
    std::uint32_t start = 0;
  };
  std::vector<Best> best(word.size() + 1);
  best[0].score = 0;
  for (std::size_t at = 0; at < word.size();) {
    auto length = static_cast<std::size_t>(utf8_next(word.substr(at)).length);
    double so_far = best[at].score;
    auto offer = [&](std::size_t to, std::int32_t token, double own) {
      double score = so_far + own;
      offered(at, to, token, own, score);
      if (score > best[to].score) best[to] = {score, token, static_cast<std::uint32_t>(at)};
    };
    bool has_single = false;
    std::uint32_t node = Trie::kRoot;
    for (std::size_t end = at; end < word.size();) {
      node = trie_.child(node, static_cast<unsigned char>(word[end++]));
      if (node == Trie::kNone) break;
      std::int32_t token = trie_.value(node);
      if (token < 0) continue;
      offer(end, token, scores_[static_cast<std::size_t>(token)]);
      has_single = has_single || end - at == length;
    }
    if (!has_single) offer(at + length, kNoToken, unknown_score_);
    at += length;
  }

  std::vector<std::pair<std::uint32_t, std::int32_t>> path;  // (start, token), last first
  for (std::size_t end = word.size(); end > 0; end = best[end].start)
    path.emplace_back(best[end].start, best[end].token);
  for (std::size_t i = path.size(); i-- > 0;) {
    std::size_t begin = path[i].first;
    if (path[i].second != kNoToken) {
      add(path[i].second, begin, i > 0 ? path[i - 1].first : word.size());
      continue;
    }
    // Neighbouring unknown characters are one unknown token.
    while (i > 0 && path[i - 1].second == kNoToken) --i;
    spell(word.substr(begin, (i > 0 ? path[i - 1].first : word.size()) - begin),
          [&](std::int32_t id, std::size_t from, std::size_t to) {
            add(id, begin + from, begin + to);
          });
  }
}

void Unigram::encode(std::string_view word, WordScratch&, std::vector<std::int32_t>& out) const {
  search(
      word, [](std::size_t, std::size_t, std::int32_t, double, double) {},
      [&](std::int32_t id, std::size_t, std::size_t) { out.push_back(id); });
}

void Unigram::explain(std::string_view word, bool steps, std::vector<ExplainedWord>& out) const {
  ExplainedWord& told = out.emplace_back();
  told.end = word.size();
  told.way = WordWay::kLattice;
  auto add = [&](std::int32_t id, std::size_t begin, std::size_t end) {
    told.tokens.push_back({begin, end, id});
  };
  if (!steps)
    return search(
        word, [](std::size_t, std::size_t, std::int32_t, double, double) {}, add);
  // Of each end the best, in descending order; of equals the first, as encoding keeps it.
  std::vector<std::vector<TokenCandidate>> ends(word.size() + 1);
  search(
      word,
      [&](std::size_t from, std::size_t to, std::int32_t token, double score, double total) {
        std::vector<TokenCandidate>& list = ends[to];
        auto at = std::upper_bound(list.begin(), list.end(), total,
                                   [](double t, const TokenCandidate& c) { return t > c.total; });
        if (list.size() == ExplainedWord::kMostCandidates) {
          ++told.left_out;
          if (at == list.end()) return;
          list.insert(at, {from, to, token, score, total, false});
          list.pop_back();
        } else {
          list.insert(at, {from, to, token, score, total, false});
        }
      },
      add);
  for (std::size_t end = word.size(); end > 0; end = ends[end].front().begin)
    ends[end].front().chosen = true;
  for (std::vector<TokenCandidate>& list : ends)
    told.candidates.insert(told.candidates.end(), list.begin(), list.end());
}

}  // namespace vitrine
