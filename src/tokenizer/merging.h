// How neighbours of a word merge, for both kinds of BPE: encoding and its explanation share it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "tokenizer/hash.h"
#include "tokenizer/model.h"

namespace vitrine {

inline constexpr std::uint32_t kNoRank = ~0u;

inline void link(std::vector<Symbol>& symbols) {
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

// Merges neighbours until none can. `pair(left, right)` fills left.rank and left.merged; `note(left,
// right)` is called with the places of two symbols before they merge. A queue entry whose rank is no
// longer the symbol's is stale and skipped.
template <typename Queue, typename Pair, typename Note>
void merge_all(std::vector<Symbol>& symbols, Queue& queue, Pair&& pair, Note&& note) {
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
    note(at, static_cast<std::uint32_t>(left.next));
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

inline constexpr std::size_t kShortWord = 20;
inline constexpr std::size_t kLongWord = 512;

// The fastest of these for a word that long.
template <typename Pair>
void merge_all(WordScratch& scratch, Pair&& pair) {
  if (scratch.symbols.size() <= kShortWord) return merge_few(scratch.symbols, pair);
  link(scratch.symbols);
  auto nobody = [](std::uint32_t, std::uint32_t) {};
  if (scratch.symbols.size() < kLongWord) {
    HeapQueue queue(scratch.heap);
    merge_all(scratch.symbols, queue, pair, nobody);
  } else {
    RankQueues queue;
    merge_all(scratch.symbols, queue, pair, nobody);
  }
}

inline constexpr std::string_view kSpaceMark = "\u2581";

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

}  // namespace vitrine
