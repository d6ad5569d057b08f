#include "tokenizer/wordpiece.h"

#include <algorithm>

#include "tokenizer/explanation.h"

namespace vitrine {
namespace {

Trie make_trie(const Vocab& vocab, const std::string& prefix) {
  std::vector<std::pair<std::string_view, std::int32_t>> keys;
  for (std::int32_t id = 0; id < vocab.size(); ++id) {
    if (!vocab.has(id) || vocab.is_special(id)) continue;
    std::string_view content = vocab.content(id);
    if (content.starts_with(prefix)) keys.emplace_back(content.substr(prefix.size()), id);
  }
  return Trie(std::move(keys));
}

}  // namespace

WordPiece::WordPiece(const Vocab& vocab, const std::string& prefix, std::size_t longest_word,
                     std::int32_t unknown)
    : starts_(make_trie(vocab, "")),
      continuations_(make_trie(vocab, prefix)),
      longest_word_(longest_word),
      unknown_(unknown) {}

template <typename Match>
bool WordPiece::match(std::string_view word, Match&& matched) const {
  auto characters = static_cast<std::size_t>(std::count_if(word.begin(), word.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
  if (characters > longest_word_) return false;
  for (std::size_t at = 0; at < word.size();) {
    const Trie& trie = at == 0 ? starts_ : continuations_;
    std::uint32_t node = Trie::kRoot;
    std::size_t longest = 0;
    std::int32_t token = kNoToken;
    for (std::size_t end = at; end < word.size();) {
      node = trie.child(node, static_cast<unsigned char>(word[end++]));
      if (node == Trie::kNone) break;
      if (trie.value(node) >= 0) {
        token = trie.value(node);
        longest = end - at;
      }
    }
    if (token == kNoToken) return false;
    matched(token, at, at + longest);
    at += longest;
  }
  return true;
}

void WordPiece::encode(std::string_view word, WordScratch&, std::vector<std::int32_t>& out) const {
  std::size_t kept = out.size();
  if (match(word, [&](std::int32_t id, std::size_t, std::size_t) { out.push_back(id); })) return;
  out.resize(kept);
  if (unknown_ != kNoToken) out.push_back(unknown_);
}

void WordPiece::explain(std::string_view word, bool, std::vector<ExplainedWord>& out) const {
  ExplainedWord& told = out.emplace_back();
  told.end = word.size();
  bool known = match(word, [&](std::int32_t id, std::size_t begin, std::size_t end) {
    told.start.push_back({begin, end, id});
  });
  told.way = known ? WordWay::kMatches : WordWay::kUnknown;
  if (known)
    told.tokens = told.start;
  else if (unknown_ != kNoToken)
    told.tokens.push_back({0, word.size(), unknown_});
}

void WordLevel::encode(std::string_view word, WordScratch&, std::vector<std::int32_t>& out) const {
  std::int32_t id = vocab_.find_plain(word);
  if (id == kNoToken) id = unknown_;
  if (id != kNoToken) out.push_back(id);
}

void WordLevel::explain(std::string_view word, bool, std::vector<ExplainedWord>& out) const {
  ExplainedWord& told = out.emplace_back();
  told.end = word.size();
  std::int32_t id = vocab_.find_plain(word);
  told.way = id != kNoToken ? WordWay::kWhole : WordWay::kUnknown;
  if (id == kNoToken) id = unknown_;
  if (id != kNoToken) told.tokens.push_back({0, word.size(), id});
}

}  // namespace vitrine
