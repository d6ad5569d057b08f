#include "tokenizer/added_tokens.h"

#include <algorithm>

#include "base/utf8.h"
#include "tokenizer/unicode.h"

namespace vitrine {

PrefixFinder::PrefixFinder(const std::vector<std::string>& patterns) {
  root_.fill(kNone);
  fail_.push_back(0);
  longest_.push_back(kNone);
  struct Edge {
    std::uint32_t from, to;
    unsigned char byte;
  };
  std::vector<std::vector<Edge>> levels;  // by depth, for building the fail links breadth first
  for (std::uint32_t p = 0; p < patterns.size(); ++p) {
    lengths_.push_back(patterns[p].size());
    if (patterns[p].empty()) continue;
    std::uint32_t state = 0;
    for (std::size_t i = patterns[p].size(); i-- > 0;) {
      auto byte = static_cast<unsigned char>(patterns[p][i]);
      std::uint64_t key = static_cast<std::uint64_t>(state) << 8 | byte;
      if (const std::uint32_t* next = edges_.find(key)) {
        state = *next;
        continue;
      }
      auto next = static_cast<std::uint32_t>(fail_.size());
      edges_.insert(key, next);
      if (state == 0) root_[byte] = next;
      fail_.push_back(0);
      longest_.push_back(kNone);
      std::size_t depth = patterns[p].size() - 1 - i;
      if (levels.size() <= depth) levels.resize(depth + 1);
      levels[depth].push_back({state, next, byte});
      state = next;
    }
    if (longest_[state] == kNone) longest_[state] = p;
  }
  for (const std::vector<Edge>& level : levels)
    for (const Edge& edge : level) {
      fail_[edge.to] = edge.from == 0 ? 0 : step(fail_[edge.from], edge.byte);
      if (longest_[edge.to] == kNone) longest_[edge.to] = longest_[fail_[edge.to]];
    }
}

std::uint32_t PrefixFinder::step(std::uint32_t state, unsigned char byte) const {
  while (state != 0) {
    if (const std::uint32_t* next = edges_.find(static_cast<std::uint64_t>(state) << 8 | byte))
      return *next;
    state = fail_[state];
  }
  return root_[byte] == kNone ? 0 : root_[byte];
}

void PrefixFinder::find_all(std::string_view text, std::vector<Hit>& out) const {
  std::uint32_t state = 0;
  for (std::size_t i = text.size(); i-- > 0;) {
    auto byte = static_cast<unsigned char>(text[i]);
    if (state == 0 && root_[byte] == kNone) continue;
    state = step(state, byte);
    if (longest_[state] != kNone) out.push_back({i, longest_[state]});
  }
}

Status AddedTokens::build(const Normalizer& normalizer) {
  std::size_t bytes = 0;
  for (const AddedToken& token : tokens_) bytes += token.content.size();
  if (bytes > kMostBytes)
    return make_error(ErrorCode::kTooLarge,
                      "the tokenizer's {} added tokens have {} bytes; at most {} are allowed",
                      tokens_.size(), bytes, kMostBytes);
  for (int g = 0; g < 4; ++g) {
    Group& group = groups_[g];
    std::vector<std::string> patterns;
    for (const AddedToken& token : tokens_) {
      if (token.normalized != (g >= 2) || (token.special && g % 2 == 0)) continue;
      group.tokens.push_back(&token);
      patterns.push_back(token.normalized ? normalizer.apply(token.content) : token.content);
    }
    if (!patterns.empty()) group.finder.emplace_back(patterns);
  }
  std::vector<std::string> patterns;
  for (const AddedToken& token : tokens_) {
    if (!token.special && token.normalized) continue;
    if (!token.special)
      plain_in_special_.push_back(static_cast<std::uint32_t>(special_.tokens.size()));
    special_.tokens.push_back(&token);
    patterns.push_back(token.content);
  }
  if (!patterns.empty()) special_.finder.emplace_back(patterns);
  return Ok{};
}

namespace {

bool word_before(std::string_view text, std::size_t at) {
  return at > 0 && is_word(utf8_next(text.substr(previous_char(text, at))).code);
}

// Whether [begin, end) overlaps one of the caller's spans.
bool touches(std::span<const ByteSpan> words, std::size_t begin, std::size_t end) {
  auto after = std::upper_bound(words.begin(), words.end(), begin,
                                [](std::size_t at, const ByteSpan& s) { return at < s.end; });
  return after != words.end() && after->begin < end;
}

bool word_after(std::string_view text, std::size_t at) {
  return at < text.size() && is_word(utf8_next(text.substr(at)).code);
}

}  // namespace

void AddedTokens::split(std::string_view text, Stage stage, bool special,
                        std::vector<Segment>& out) const {
  const Group& group = this->group(stage, special);
  std::vector<PrefixFinder::Hit> hits;
  if (!group.finder.empty()) group.finder[0].find_all(text, hits);
  std::reverse(hits.begin(), hits.end());
  cut(text, group, hits, out);
}

void AddedTokens::split_around(std::string_view text, std::span<const ByteSpan> words,
                               std::vector<Segment>& out) const {
  std::vector<PrefixFinder::Hit> all, others, hits;
  const Group& plain = group(Stage::kRaw, false);
  if (!special_.finder.empty()) special_.finder[0].find_all(text, all);
  if (!plain.finder.empty()) plain.finder[0].find_all(text, others);
  // Both lists run from the end of the text to its beginning. Where a special token would include a
  // byte of the caller's words, the longest other token at that place is taken.
  auto other = others.begin();
  for (const PrefixFinder::Hit& hit : all) {
    while (other != others.end() && other->at > hit.at) ++other;
    std::size_t end = hit.at + special_.finder[0].length(hit.pattern);
    if (!special_.tokens[hit.pattern]->special || !touches(words, hit.at, end))
      hits.push_back(hit);
    else if (other != others.end() && other->at == hit.at)
      hits.push_back({hit.at, plain_in_special_[other->pattern]});
  }
  std::reverse(hits.begin(), hits.end());
  cut(text, special_, hits, out);
}

bool AddedTokens::spell_special(std::string_view text, std::span<const ByteSpan> words,
                                const Normalizer& normalizer) const {
  if (words.empty() || special_.finder.empty()) return false;
  std::vector<PrefixFinder::Hit> hits;
  special_.finder[0].find_all(text, hits);
  for (const PrefixFinder::Hit& hit : hits) {
    if (!special_.tokens[hit.pattern]->special) continue;
    if (touches(words, hit.at, hit.at + special_.finder[0].length(hit.pattern))) return true;
  }
  // The caller's words may spell a special token after normalization, too.
  const Group& normalized = group(Stage::kNormalized, true);
  if (normalized.finder.empty()) return false;
  for (const ByteSpan& span : words) {
    hits.clear();
    normalized.finder[0].find_all(normalizer.apply(text.substr(span.begin, span.end - span.begin)),
                                  hits);
    for (const PrefixFinder::Hit& hit : hits)
      if (normalized.tokens[hit.pattern]->special) return true;
  }
  return false;
}

void AddedTokens::cut(std::string_view text, const Group& group,
                      const std::vector<PrefixFinder::Hit>& hits, std::vector<Segment>& out) {
  std::size_t done = 0;  // everything before is in `out`
  std::size_t next = 0;  // matches before this place overlap an earlier one
  for (auto hit = hits.begin(); hit != hits.end(); ++hit) {
    if (hit->at < next) continue;
    const AddedToken& token = *group.tokens[hit->pattern];
    std::size_t begin = hit->at;
    std::size_t end = begin + group.finder[0].length(hit->pattern);
    next = end;
    if (begin < done) continue;
    if (token.single_word && (word_before(text, begin) || word_after(text, end))) continue;
    while (token.lstrip && begin > done) {
      std::size_t previous = previous_char(text, begin);
      if (!is_space(utf8_next(text.substr(previous)).code)) break;
      begin = previous;
    }
    while (token.rstrip && end < text.size()) {
      Utf8Char c = utf8_next(text.substr(end));
      if (!is_space(c.code)) break;
      end += static_cast<std::size_t>(c.length);
    }
    if (begin > done) out.push_back({text.substr(done, begin - done), kNoToken});
    out.push_back({text.substr(begin, end - begin), token.id});
    done = end;
  }
  if (done < text.size()) out.push_back({text.substr(done), kNoToken});
}

}  // namespace vitrine
