#include "trace/step_log.h"

#include <cstdlib>
#include <new>

#include "base/check.h"

namespace vitrine {

// Readers copy words that may be written to at the same time, and look afterwards whether they were: the
// writer moves oldest_ past an event before it writes over it. A word is stored with release and loaded with
// acquire, so who has seen a new word also sees that oldest_ has moved.

void StepLog::Free::operator()(std::uint64_t* words) const { std::free(words); }

StepLog::StepLog(std::int64_t bytes) {
  if (bytes <= 0) return;
  capacity_ = capacity_of(bytes);
  auto take = [](std::size_t words) {
    auto* out = static_cast<std::uint64_t*>(std::calloc(words, sizeof(std::uint64_t)));
    if (out == nullptr) throw std::bad_alloc();
    return out;
  };
  ring_.reset(take(capacity_));
  draft_.reset(take(capacity_ / 4));
}

std::uint64_t StepLog::load(std::uint64_t at) const {
  return std::atomic_ref(ring_[at & (capacity_ - 1)]).load(std::memory_order_acquire);
}

void StepLog::store(std::uint64_t at, std::uint64_t word) {
  std::atomic_ref(ring_[at & (capacity_ - 1)]).store(word, std::memory_order_release);
}

std::uint64_t StepLog::append(EventKind kind, std::size_t bytes) {
  VT_CHECK(bytes <= most(), "{} bytes, {} at most", bytes, most());
  const std::size_t content = (bytes + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t);
  const std::uint64_t words = kHead + content, at = head_.load(std::memory_order_relaxed);
  const std::uint64_t seq = seq_.load(std::memory_order_relaxed) + 1;
  std::uint64_t oldest = oldest_.load(std::memory_order_relaxed);
  while (at + words - oldest > capacity_) oldest += Head(load(oldest)).words;
  oldest_.store(oldest, std::memory_order_relaxed);
  store(at, static_cast<std::uint64_t>(kind) << 56 | words);
  store(at + 1, seq);
  for (std::size_t i = 0; i < content; ++i) store(at + kHead + i, draft_[i]);
  seq_.store(seq, std::memory_order_relaxed);
  head_.store(at + words, std::memory_order_release);
  return at;
}

StepLog::Place StepLog::oldest() const {
  if (!on()) return {};
  for (;;) {
    const std::uint64_t head = head_.load(std::memory_order_acquire);
    const std::uint64_t at = oldest_.load(std::memory_order_acquire);
    if (at >= head) return {at, last_seq() + 1};  // there was nothing yet
    const std::uint64_t seq = load(at + 1);
    if (kept(at)) return {at, seq};
  }
}

StepLog::Place StepLog::find(std::uint64_t seq) const {
  Place place = oldest();
  const std::uint64_t head = head_.load(std::memory_order_acquire);
  while (place.seq < seq && place.at < head) {
    const std::uint64_t words = Head(load(place.at)).words;
    if (!kept(place.at)) {
      place = oldest();
      continue;
    }
    place.at += words, ++place.seq;
  }
  return place;
}

// Appends the event at `at` to `words`; false where it is gone, and then `words` is as it was.
bool StepLog::copy(std::uint64_t at, std::uint64_t head, std::vector<std::uint64_t>& words) const {
  const std::uint64_t first = load(at);
  if (!kept(at)) return false;
  const std::size_t n = Head(first).words, before = words.size();
  VT_CHECK(n >= kHead && at + n <= head, "{} words at {} of {}", n, at, head);
  words.resize(before + n);
  for (std::size_t i = 0; i < n; ++i) words[before + i] = load(at + i);
  if (kept(at)) return true;
  words.resize(before);
  return false;
}

std::uint64_t StepLog::read(Place& place, std::vector<std::uint64_t>& words,
                            std::size_t most_bytes) const {
  words.clear();
  std::uint64_t lost = 0;
  if (!on()) return lost;
  const std::uint64_t head = head_.load(std::memory_order_acquire);
  while (place.at < head && words.size() * sizeof(words[0]) < most_bytes) {
    const std::size_t before = words.size();
    if (copy(place.at, head, words)) {
      place.at += words.size() - before, ++place.seq;
    } else if (before > 0) {
      break;  // what is lost is told by the next call
    } else {
      const Place next = oldest();
      lost += next.seq - place.seq;
      place = next;
    }
  }
  return lost;
}

bool StepLog::read_at(std::uint64_t at, std::vector<std::uint64_t>& words) const {
  words.clear();
  const std::uint64_t head = head_.load(std::memory_order_acquire);
  return on() && at < head && kept(at) && copy(at, head, words);
}

}  // namespace vitrine
