// The last events, packed, in a ring of bytes that is allocated once. One thread at a time appends and never
// waits; any number of others read at the same time, without a lock, and learn how many events they missed.
//
// Events are numbered from 1 on, without gaps.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trace/events.h"

namespace vitrine {

// An event as it was packed; refers to the bytes that it was read into.
struct PackedEvent {
  EventKind kind = EventKind::kArrive;
  std::uint64_t seq = 0;
  std::span<const std::byte> bytes;
};

class StepLog {
 public:
  // 0 bytes: it keeps nothing. Memory is taken page by page, when it is first written to.
  explicit StepLog(std::int64_t bytes);
  bool on() const { return capacity_ > 0; }
  // Bytes that one event may have at most, in a log of `bytes` and in this one.
  static std::size_t most_of(std::int64_t bytes) {
    return bytes > 0 ? capacity_of(bytes) / 4 * sizeof(std::uint64_t) : 0;
  }
  std::size_t most() const { return capacity_ / 4 * sizeof(std::uint64_t); }

  // ---- The thread that appends.

  // Where the next event is to be packed into: most() bytes.
  std::span<std::byte> draft() { return {reinterpret_cast<std::byte*>(draft_.get()), most()}; }
  // Appends the first `bytes` of the draft. Returns where it begins, for read_at().
  std::uint64_t append(EventKind kind, std::size_t bytes);
  std::uint64_t last_seq() const { return seq_.load(std::memory_order_relaxed); }

  // ---- Any thread.

  // Where a reader is: before event `seq`.
  struct Place {
    std::uint64_t at = 0, seq = 1;
  };
  Place oldest() const;
  // Behind the newest event, where nobody appends meanwhile.
  Place end() const { return {head_.load(std::memory_order_acquire), last_seq() + 1}; }
  // Before event `seq`; the oldest where that is gone, the end where it is yet to come.
  Place find(std::uint64_t seq) const;
  // Copies whole events from `place` on into `words`, some up to `most_bytes` but at least one if there is one,
  // and moves `place` behind them. Returns how many events before them are lost.
  std::uint64_t read(Place& place, std::vector<std::uint64_t>& words, std::size_t most_bytes) const;
  // The event that append() put there; false where it is gone.
  bool read_at(std::uint64_t at, std::vector<std::uint64_t>& words) const;

  // Calls f(PackedEvent) for each of those that a read gave.
  template <typename F>
  static void each(std::span<const std::uint64_t> words, F f) {
    while (!words.empty()) {
      const Head head(words[0]);
      f(PackedEvent{head.kind, words[1], std::as_bytes(words.subspan(kHead, head.words - kHead))});
      words = words.subspan(head.words);
    }
  }

 private:
  // The first word of an event: its kind, and how many words it has with this and the second, its number.
  static constexpr std::size_t kHead = 2;
  struct Head {
    explicit Head(std::uint64_t word)
        : kind(static_cast<EventKind>(word >> 56)), words(word & ((std::uint64_t{1} << 56) - 1)) {}
    EventKind kind;
    std::size_t words;
  };
  static std::size_t capacity_of(std::int64_t bytes) {
    return std::bit_ceil(static_cast<std::size_t>(bytes) / sizeof(std::uint64_t));
  }
  std::uint64_t load(std::uint64_t at) const;
  void store(std::uint64_t at, std::uint64_t word);
  bool kept(std::uint64_t at) const { return oldest_.load(std::memory_order_acquire) <= at; }
  bool copy(std::uint64_t at, std::uint64_t head, std::vector<std::uint64_t>& words) const;

  struct Free {
    void operator()(std::uint64_t* words) const;
  };
  std::size_t capacity_ = 0;  // words; a power of two
  std::unique_ptr<std::uint64_t[], Free> ring_, draft_;
  // Words ever appended; the first of the oldest event that is whole.
  std::atomic<std::uint64_t> head_{0}, oldest_{0};
  std::atomic<std::uint64_t> seq_{0};
};

}  // namespace vitrine
