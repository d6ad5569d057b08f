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

// Which neighbours to merge next: lowest rank first, then leftmost.
class HeapQueue {
 public:
  explicit HeapQueue(std::vector<std::uint64_t>& storage) : heap_(storage) { heap_.clear(); }
  void push(std::uint32_t rank, std::uint32_t at) {
    heap_.push_back(static_cast<std::uint64_t>(rank) << 32 | at);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }
  bool pop(std::uint32_t& rank, std::uint32_t& at) {
    if (heap_.empty()) return false;
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    rank = static_cast<std::uint32_t>(heap_.back() >> 32);
    at = static_cast<std::uint32_t>(heap_.back());
    heap_.pop_back();
    return true;
  }

 private:
  std::vector<std::uint64_t>& heap_;
};

// The same for long words, which repeat few ranks: a queue per rank. Places mostly come in
// ascending order and then cost constant time; a heap takes those that do not.
class RankQueues {
 public:
  void push(std::uint32_t rank, std::uint32_t at) {
    std::uint32_t index = index_.insert(rank, static_cast<std::uint32_t>(queues_.size()));
    if (index == queues_.size()) queues_.push_back({rank, {}, {}, 0, false});
    Queue& queue = queues_[index];
    if (!queue.listed) {
      queue.listed = true;
      ranks_.push_back(static_cast<std::uint64_t>(rank) << 32 | index);
      std::push_heap(ranks_.begin(), ranks_.end(), std::greater<>());
    }
    if (queue.head == queue.ordered.size() || queue.ordered.back() <= at) {
      queue.ordered.push_back(at);
    } else {
      queue.late.push_back(at);
      std::push_heap(queue.late.begin(), queue.late.end(), std::greater<>());
    }
  }
  bool pop(std::uint32_t& rank, std::uint32_t& at) {
    while (!ranks_.empty()) {
      Queue& queue = queues_[static_cast<std::uint32_t>(ranks_.front())];
      rank = queue.rank;
      bool ordered = queue.head < queue.ordered.size();
      if (ordered && (queue.late.empty() || queue.ordered[queue.head] <= queue.late.front())) {
        at = queue.ordered[queue.head++];
        return true;
      }
      if (!queue.late.empty()) {
        std::pop_heap(queue.late.begin(), queue.late.end(), std::greater<>());
        at = queue.late.back();
        queue.late.pop_back();
        return true;
      }
      queue.ordered.clear();
      queue.head = 0;
      queue.listed = false;
      std::pop_heap(ranks_.begin(), ranks_.end(), std::greater<>());
      ranks_.pop_back();
    }
    return false;
  }

 private:
  struct Queue {
    std::uint32_t rank;
    std::vector<std::uint32_t> ordered, late;
    std::size_t head;
    bool listed;  // in ranks_
  };
  FlatMap<std::uint32_t> index_;  // rank -> queue
  std::vector<Queue> queues_;
  std::vector<std::uint64_t> ranks_;  // heap of (rank, queue)
};

// Merges neighbours until none can. `pair(left, right)` fills left.rank and left.merged. A queue
// entry whose rank is no longer the symbol's is stale and skipped.
template <typename Queue, typename Pair>
void merge_all(std::vector<Symbol>& symbols, Queue& queue, Pair&& pair) {
  auto refresh = [&](std::int32_t i) {
    Symbol& left = symbols[i];
    left.rank = kNoRank;
    if (left.next < 0) return;
    pair(left, symbols[left.next]);
    if (left.rank != kNoRank) queue.push(left.rank, static_cast<std::uint32_t>(i));
  };
  for (std::size_t i = 0; i < symbols.size(); ++i) refresh(static_cast<std::int32_t>(i));
  std::uint32_t rank, at;
  while (queue.pop(rank, at)) {
    Symbol& left = symbols[at];
    if (left.rank != rank) continue;
    Symbol& right = symbols[left.next];
    left.id = left.merged;
    left.length += right.length;
    left.next = right.next;
    right.rank = kNoRank;
    if (left.next >= 0) symbols[left.next].prev = static_cast<std::int32_t>(at);
    refresh(static_cast<std::int32_t>(at));
    if (left.prev >= 0) refresh(left.prev);
  }
}

// The same for few symbols: a linear search for the best pair after every merge.
template <typename Pair>
void merge_few(std::vector<Symbol>& symbols, Pair&& pair) {
  auto refresh = [&](std::size_t i) {
    symbols[i].rank = kNoRank;
    if (i + 1 < symbols.size()) pair(symbols[i], symbols[i + 1]);
  };
  for (std::size_t i = 0; i < symbols.size(); ++i) refresh(i);
  for (;;) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < symbols.size(); ++i)
      if (symbols[i].rank < symbols[best].rank) best = i;
    if (symbols.empty() || symbols[best].rank == kNoRank) break;
    symbols[best].id = symbols[best].merged;
    symbols[best].length += symbols[best + 1].length;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    refresh(best);
    if (best > 0) refresh(best - 1);
  }
  link(symbols);
}

constexpr std::size_t kShortWord = 20;
constexpr std::size_t kLongWord = 512;

template <typename Pair>
void merge_all(WordScratch& scratch, Pair&& pair) {
  if (scratch.symbols.size() <= kShortWord) return merge_few(scratch.symbols, pair);
  link(scratch.symbols);
  if (scratch.symbols.size() < kLongWord) {
    HeapQueue queue(scratch.heap);
    merge_all(scratch.symbols, queue, pair);
  } else {
    RankQueues queue;
    merge_all(scratch.symbols, queue, pair);
  }
}

constexpr std::string_view kSpaceMark = "\u2581";

// Whether a space mark only ever begins a token (or follows another mark). Then no merge goes
// across the start of a marked word, and words can be merged one by one, which uses the CPU caches
// better.
bool marks_begin_tokens(const Vocab& vocab) {
  if (vocab.find_plain(kSpaceMark) == kNoToken) return false;
  for (std::int32_t id = 0; id < vocab.size(); ++id) {
    if (!vocab.has(id) || vocab.is_special(id)) continue;
    std::string_view content = vocab.content(id);
    while (content.starts_with(kSpaceMark)) content.remove_prefix(kSpaceMark.size());
    if (content.find(kSpaceMark) != std::string_view::npos) return false;
  }
  return true;
}

template <typename F>
void for_each_marked_word(std::string_view text, F&& f) {
  std::size_t begin = 0, at = 0;
  while ((at = text.find(kSpaceMark, at)) != std::string_view::npos) {
    if (at > begin) f(text.substr(begin, at - begin));
    begin = at;
    while (text.substr(at).starts_with(kSpaceMark)) at += kSpaceMark.size();
  }
  if (begin < text.size()) f(text.substr(begin));
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

void byte_level_append(std::string_view bytes, std::string& out) {
  for (char c : bytes) utf8_append(out, alphabet().to_char[static_cast<unsigned char>(c)]);
}

std::string byte_level_encode(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  byte_level_append(bytes, out);
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
  by_words_ = !options_.byte_level && !options_.ignore_merges && options_.word_prefix.empty() &&
              options_.word_suffix.empty() && marks_begin_tokens(vocab);
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

void Bpe::seed_chars(std::string_view word, WordScratch& scratch) const {
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
      symbols.push_back({begin, static_cast<std::uint32_t>(length), id, -1, -1, kNoRank, kNoToken});
    after_unknown = unknown;
  }
}

void Bpe::encode(std::string_view word, WordScratch& scratch,
                 std::vector<std::int32_t>& out) const {
  if (!by_words_) return encode_word(word, scratch, out);
  for_each_marked_word(word, [&](std::string_view part) { encode_word(part, scratch, out); });
}

void Bpe::encode_word(std::string_view word, WordScratch& scratch,
                      std::vector<std::int32_t>& out) const {
  if (options_.ignore_merges) {
    std::string_view spelt = word;
    if (options_.byte_level) {
      scratch.text.clear();
      byte_level_append(word, scratch.text);
      spelt = scratch.text;
    }
    std::int32_t id = spelt.size() <= vocab_.longest() ? vocab_.find_plain(spelt) : kNoToken;
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
  merge_all(scratch, [&](Symbol& left, const Symbol& right) {
    if (const Merge* merge = merges_.find(pair_key(left.id, right.id))) {
      left.rank = merge->rank;
      left.merged = merge->token;
    }
  });
  if (scratch.symbols.empty()) return;
  for (std::int32_t i = 0; i >= 0; i = scratch.symbols[i].next)
    out.push_back(scratch.symbols[i].id);
}

ScoreBpe::ScoreBpe(const Vocab& vocab, const std::vector<float>& scores, std::int32_t unknown)
    : vocab_(vocab), unknown_(unknown), by_words_(marks_begin_tokens(vocab)) {
  ranks_.reserve(scores.size());
  for (float score : scores) {
    if (std::isnan(score)) score = -INFINITY;
    auto bits = std::bit_cast<std::uint32_t>(score == 0 ? 0.0f : score);
    // The score's bits as an unsigned number that ascends with it, then inverted.
    bits = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    ranks_.push_back(~bits);
  }
  for (int b = 0; b < 256; ++b) bytes_[b] = vocab.find_byte(static_cast<unsigned char>(b));
}

void ScoreBpe::encode(std::string_view word, WordScratch& scratch,
                      std::vector<std::int32_t>& out) const {
  if (!by_words_) return encode_word(word, scratch, out);
  for_each_marked_word(word, [&](std::string_view part) { encode_word(part, scratch, out); });
}

void ScoreBpe::encode_word(std::string_view word, WordScratch& scratch,
                           std::vector<std::int32_t>& out) const {
  std::vector<Symbol>& symbols = scratch.symbols;
  symbols.clear();
  for (std::size_t at = 0; at < word.size();) {
    auto length = static_cast<std::size_t>(utf8_next(word.substr(at)).length);
    symbols.push_back({static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(length),
                       vocab_.find_plain(word.substr(at, length)), -1, -1, kNoRank, kNoToken});
    at += length;
  }
  merge_all(scratch, [&](Symbol& left, const Symbol& right) {
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
