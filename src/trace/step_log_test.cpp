#include "trace/step_log.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "trace/packing.h"

namespace vitrine {
namespace {

constexpr std::int64_t kBytes = 1 << 20;

// Event number n has n % 61 copies of its number.
std::uint64_t append(StepLog& log) {
  const std::uint64_t seq = log.last_seq() + 1, copies = seq % 61;
  for (std::uint64_t i = 0; i < copies; ++i)
    std::memcpy(log.draft().data() + i * sizeof seq, &seq, sizeof seq);
  return log.append(EventKind::kStep, copies * sizeof seq);
}

// Looks at what was read and returns how many events it was.
int check(const std::vector<std::uint64_t>& words, std::uint64_t& next) {
  int events = 0;
  StepLog::each(words, [&](const PackedEvent& event) {
    EXPECT_EQ(event.kind, EventKind::kStep);
    EXPECT_EQ(event.seq, next);
    EXPECT_EQ(event.bytes.size(), event.seq % 61 * sizeof next);
    for (std::size_t i = 0; i < event.bytes.size(); i += sizeof next) {
      std::uint64_t found = 0;
      std::memcpy(&found, event.bytes.data() + i, sizeof found);
      ASSERT_EQ(found, event.seq);
    }
    next = event.seq + 1, ++events;
  });
  return events;
}

TEST(StepLog, HandsOutWhatIsNewAndCountsWhatIsLost) {
  StepLog log(kBytes);
  StepLog::Place place = log.oldest();
  std::vector<std::uint64_t> words;
  EXPECT_EQ(log.read(place, words, SIZE_MAX), 0u);
  EXPECT_TRUE(words.empty());
  std::uint64_t next = 1, lost = 0, events = 0;
  for (int round = 0; round < 2000; ++round) {
    for (int i = 0; i < (round % 100 == 99 ? 9000 : 7); ++i) append(log);
    const std::uint64_t missed = log.read(place, words, SIZE_MAX);
    next += missed, lost += missed;
    events += static_cast<std::uint64_t>(check(words, next));
    ASSERT_EQ(place.seq, next);
    ASSERT_EQ(next, log.last_seq() + 1);
  }
  EXPECT_EQ(lost + events, log.last_seq());
  EXPECT_GT(lost, 0u) << "the ring never turned: the test shows little";
  // In small pieces it is the same.
  place = log.oldest();
  next = place.seq;
  std::uint64_t pieces = 0;
  while (log.read(place, words, 1), !words.empty()) pieces += check(words, next) == 1;
  EXPECT_EQ(next, log.last_seq() + 1);
  EXPECT_EQ(pieces, next - log.oldest().seq);
}

TEST(StepLog, FindsAnEventByItsNumber) {
  StepLog log(kBytes);
  EXPECT_EQ(log.find(5).seq, 1u) << "there is none yet";
  std::vector<std::uint64_t> places{0};
  for (int i = 0; i < 9000; ++i) places.push_back(append(log));
  const std::uint64_t oldest = log.oldest().seq;
  ASSERT_GT(oldest, 10u);
  std::vector<std::uint64_t> words;
  for (std::uint64_t seq :
       {std::uint64_t{0}, oldest - 1, oldest, oldest + 1, std::uint64_t{9000}}) {
    const auto place = log.find(seq);
    const std::uint64_t expected = std::max(seq, oldest);
    EXPECT_EQ(place.seq, expected);
    EXPECT_EQ(place.at, places[expected]);
  }
  EXPECT_EQ(log.find(9001).seq, 9001u);
  EXPECT_EQ(log.find(UINT64_MAX).seq, 9001u);
  EXPECT_EQ(log.end().at, log.find(9001).at);
  std::uint64_t next = oldest;
  EXPECT_TRUE(log.read_at(places[oldest], words));
  EXPECT_EQ(check(words, next), 1);
  EXPECT_FALSE(log.read_at(places[oldest - 1], words)) << "it is gone";
  EXPECT_FALSE(log.read_at(log.end().at, words)) << "it is yet to come";
}

// Whole events only, in order, however fast the writer is.
TEST(StepLog, IsReadWhileItIsWritten) {
  StepLog log(kBytes);
  std::atomic<bool> stop{false};
  auto reader = [&](std::size_t most) {
    StepLog::Place place = log.oldest();
    std::vector<std::uint64_t> words;
    std::uint64_t next = place.seq, events = 0;
    while (!stop || place.seq <= log.last_seq()) {
      next += log.read(place, words, most);
      events += static_cast<std::uint64_t>(check(words, next));
      if (log.find(place.seq + 3).seq < place.seq) ADD_FAILURE();
    }
    EXPECT_GT(events, 0u);
    EXPECT_EQ(next, log.last_seq() + 1);
  };
  std::thread slow(reader, 100), fast(reader, SIZE_MAX);
  for (int i = 0; i < 200000; ++i) append(log);
  stop = true;
  slow.join(), fast.join();
}

TEST(StepLog, OffItKeepsNothing) {
  StepLog log(0);
  EXPECT_FALSE(log.on());
  StepLog::Place place = log.oldest();
  std::vector<std::uint64_t> words;
  EXPECT_EQ(log.read(place, words, SIZE_MAX), 0u);
  EXPECT_FALSE(log.read_at(0, words));
  EXPECT_EQ(log.find(7).seq, 1u);
}

}  // namespace
}  // namespace vitrine
