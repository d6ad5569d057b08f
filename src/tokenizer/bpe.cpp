#include "tokenizer/bpe.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "base/utf8.h"

namespace vitrine {
namespace {

constexpr std::uint32_t kNoRank = ~0u;

std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
         static_cast<std::uint32_t>(right);
}

void link(std::vector<Symbol>& symbols) {
  auto count = static_cast<std::int32_t>(symbols.size());
  for (std::int32_t i = 0; i < count; ++i) {
    symbols[i].prev = i - 1;
    symbols[i].next = i + 1 < count ? i + 1 : -1;
  }
}

// Merges neighbours until none can: lowest rank first, then leftmost. `pair(left, right)` fills
// left.rank and left.merged. O(n log n): the heap holds (rank, position) keys; a key whose rank is no
// longer the symbol's is stale and skipped.
template <typename Pair>
void merge_all(std::vector<Symbol>& symbols, std::vector<std::uint64_t>& heap, Pair&& pair) {
  auto refresh = [&](std::int32_t i) {
    Symbol& left = symbols[i];
    left.rank = kNoRank;
    if (left.next < 0) return false;
    pair(left, symbols[left.next]);
    if (left.rank == kNoRank) return false;
    heap.push_back(static_cast<std::uint64_t>(left.rank) << 32 | static_cast<std::uint32_t>(i));
    return true;
  };
  auto update = [&](std::int32_t i) {
    if (refresh(i)) std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };

  heap.clear();
  for (std::size_t i = 0; i < symbols.size(); ++i) refresh(static_cast<std::int32_t>(i));
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    std::uint64_t key = heap.back();
    heap.pop_back();
    auto at = static_cast<std::int32_t>(key & 0xFFFFFFFFu);
    Symbol& left = symbols[at];
    if (left.rank != key >> 32) continue;
    Symbol& right = symbols[left.next];
    left.id = left.merged;
    left.length += right.length;
    left.next = right.next;
    right.rank = kNoRank;
    if (left.next >= 0) symbols[left.next].prev = at;
    update(at);
    if (left.prev >= 0) update(left.prev);
  }
}

struct ByteAlphabet {
  std::array<char32_t, 256> to_char;
  std::array<std::int16_t, 512> to_byte;

  ByteAlphabet() {
    to_byte.fill(-1);
    char32_t next = 256;
    for (int b = 0; b < 256; ++b) {
      bool printable = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      to_char[b] = printable ? static_cast<char32_t>(b) : next++;
      to_byte[to_char[b]] = static_cast<std::int16_t>(b);
    }
  }
};

const ByteAlphabet& alphabet() {
  static const ByteAlphabet table;
  return table;
}

}  // namespace

std::string byte_level_encode(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (char c : bytes) utf8_append(out, alphabet().to_char[static_cast<unsigned char>(c)]);
  return out;
}

bool byte_level_decode(std::string_view text, std::string& out) {
  std::size_t start = out.size();
  while (!text.empty()) {
    Utf8Char c = utf8_next(text);
    int byte = c.valid && c.code < 512 ? alphabet().to_byte[c.code] : -1;
    if (byte < 0) {
      out.resize(start);
      return false;
    }
    out += static_cast<char>(byte);
    text.remove_prefix(static_cast<std::size_t>(c.length));
  }
  return true;
}

Bpe::Bpe(const Vocab& vocab, BpeOptions options) : vocab_(vocab), options_(std::move(options)) {
  for (int b = 0; b < 256; ++b) {
    auto byte = static_cast<unsigned char>(b);
    char raw = static_cast<char>(byte);
    bytes_[b] = options_.byte_level ? vocab.find_plain(byte_level_encode({&raw, 1}))
                                    : vocab.find_byte(byte);
  }
}

bool Bpe::add_merge(std::string_view left, std::string_view right, std::uint32_t rank,
                    bool replace) {
  std::int32_t a = vocab_.find(left), b = vocab_.find(right);
  if (a == kNoToken || b == kNoToken || right.size() < options_.word_prefix.size()) return false;
  std::string whole(left);
  whole += right.substr(options_.word_prefix.size());
  std::int32_t token = vocab_.find(whole);
  if (token == kNoToken) return false;
  // Text must not become a special token by way of merges.
  if (!vocab_.is_special(token)) merges_.insert(pair_key(a, b), {rank, token}, replace);
  return true;
}

void Bpe::seed_bytes(std::string_view word, std::vector<Symbol>& symbols) const {
  for (std::size_t i = 0; i < word.size(); ++i) {
    std::int32_t id = bytes_[static_cast<unsigned char>(word[i])];
    if (id == kNoToken) id = options_.unknown;
    if (id != kNoToken)
      symbols.push_back({static_cast<std::uint32_t>(i), 1, id, -1, -1, kNoRank, kNoToken});
  }
}

bool Bpe::push_bytes(std::string_view text, std::uint32_t at, std::vector<Symbol>& symbols) const {
  for (char c : text)
    if (bytes_[static_cast<unsigned char>(c)] == kNoToken) return false;
  for (char c : text)
    symbols.push_back({at, 1, bytes_[static_cast<unsigned char>(c)], -1, -1, kNoRank, kNoToken});
  return true;
}

void Bpe::seed_chars(std::string_view word, Scratch& scratch) const {
  std::vector<Symbol>& symbols = scratch.symbols;
  bool after_unknown = false;
  for (std::size_t at = 0; at < word.size();) {
    auto length = static_cast<std::size_t>(utf8_next(word.substr(at)).length);
    std::string_view text = word.substr(at, length);
    bool marked = (at > 0 && !options_.word_prefix.empty()) ||
                  (at + length == word.size() && !options_.word_suffix.empty());
    if (marked) {
      scratch.text.clear();
      if (at > 0) scratch.text += options_.word_prefix;
      scratch.text += text;
      if (at + length == word.size()) scratch.text += options_.word_suffix;
      text = scratch.text;
    }
    auto begin = static_cast<std::uint32_t>(at);
    at += length;
    std::int32_t id = vocab_.find_plain(text);
    if (id == kNoToken && options_.byte_fallback && push_bytes(text, begin, symbols)) {
      after_unknown = false;
      continue;
    }
    bool unknown = id == kNoToken;
    if (unknown) id = options_.unknown;
    if (id == kNoToken) continue;
    if (!(unknown && after_unknown && options_.fuse_unknown))
      symbols.push_back(
          {begin, static_cast<std::uint32_t>(length), id, -1, -1, kNoRank, kNoToken});
    after_unknown = unknown;
  }
}

void Bpe::encode(std::string_view word, Scratch& scratch, std::vector<std::int32_t>& out) const {
  if (options_.ignore_merges) {
    std::int32_t id = vocab_.find_plain(options_.byte_level ? byte_level_encode(word)
                                                            : std::string(word));
    if (id != kNoToken) {
      out.push_back(id);
      return;
    }
  }
  scratch.symbols.clear();
  if (options_.byte_level)
    seed_bytes(word, scratch.symbols);
  else
    seed_chars(word, scratch);
  link(scratch.symbols);
  merge_all(scratch.symbols, scratch.heap, [&](Symbol& left, const Symbol& right) {
    if (const Merge* merge = merges_.find(pair_key(left.id, right.id))) {
      left.rank = merge->rank;
      left.merged = merge->token;
    }
  });
  if (scratch.symbols.empty()) return;
  for (std::int32_t i = 0; i >= 0; i = scratch.symbols[i].next) out.push_back(scratch.symbols[i].id);
}

ScoreBpe::ScoreBpe(const Vocab& vocab, const std::vector<float>& scores, std::int32_t unknown)
    : vocab_(vocab), unknown_(unknown) {
  ranks_.reserve(scores.size());
  for (float score : scores) {
    if (std::isnan(score)) score = -INFINITY;
    auto bits = std::bit_cast<std::uint32_t>(score == 0 ? 0.0f : score);
    // Ascending in the score as an unsigned number, then turned round.
    bits = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    ranks_.push_back(~bits);
  }
  for (int b = 0; b < 256; ++b) bytes_[b] = vocab.find_byte(static_cast<unsigned char>(b));
}

void ScoreBpe::encode(std::string_view word, Scratch& scratch,
                      std::vector<std::int32_t>& out) const {
  std::vector<Symbol>& symbols = scratch.symbols;
  symbols.clear();
  for (std::size_t at = 0; at < word.size();) {
    auto length = static_cast<std::size_t>(utf8_next(word.substr(at)).length);
    symbols.push_back({static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(length),
                       vocab_.find_plain(word.substr(at, length)), -1, -1, kNoRank, kNoToken});
    at += length;
  }
  link(symbols);
  merge_all(symbols, scratch.heap, [&](Symbol& left, const Symbol& right) {
    std::size_t length = std::size_t{left.length} + right.length;
    if (length > vocab_.longest()) return;
    std::int32_t id = vocab_.find_plain(word.substr(left.begin, length));
    if (id == kNoToken) return;
    left.rank = ranks_[static_cast<std::size_t>(id)];
    left.merged = id;
  });
  if (symbols.empty()) return;
  for (std::int32_t i = 0; i >= 0; i = symbols[i].next) {
    const Symbol& symbol = symbols[i];
    if (symbol.id != kNoToken) {
      out.push_back(symbol.id);
      continue;
    }
    for (char c : word.substr(symbol.begin, symbol.length)) {
      std::int32_t id = bytes_[static_cast<unsigned char>(c)];
      if (id == kNoToken) id = unknown_;
      if (id != kNoToken) out.push_back(id);
    }
  }
}

}  // namespace vitrine
