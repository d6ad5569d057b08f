#include "trace/log_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "base/json.h"
#include "support/allocation_count.h"
#include "trace/flight_recorder.h"
#include "trace/packing.h"

namespace vitrine {
namespace {

void append_step(StepLog& log, StepEvent& event) {
  Packer packer(log.draft());
  StepFields::visit(event, packer);
  log.append(EventKind::kStep, packer.size());
  ++event.record.step;
}

std::vector<json::object> lines_of(std::string_view text) {
  std::vector<json::object> out;
  for (; !text.empty(); text.remove_prefix(text.find('\n') + 1))
    if (text[0] == '{') out.push_back(json::parse(text.substr(0, text.find('\n'))).get_object());
  return out;
}

TEST(LogLines, AreTheEventsInPieces) {
  StepLog log(1 << 20);
  StepEvent event;
  for (int i = 0; i < 100; ++i) append_step(log, event);
  LogLines lines(log, log.find(11));
  std::string all;
  for (std::string piece;; piece.clear()) {
    ASSERT_EQ(lines.more(piece, 90, 4096), 0u);
    if (piece.empty()) break;
    EXPECT_LT(piece.size(), 16384u);
    all += piece;
  }
  EXPECT_EQ(lines.told(), 90u);
  const auto found = lines_of(all);
  ASSERT_EQ(found.size(), 80u);
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_EQ(found[i].at("seq").to_number<std::uint64_t>(), 11 + i);
}

TEST(LogLines, SayHowManyAreLostAndStopThere) {
  StepLog log(1 << 14);
  StepEvent event;
  append_step(log, event);
  LogLines lines(log, log.oldest());
  for (int i = 0; i < 500; ++i) append_step(log, event);
  std::string out;
  const std::uint64_t oldest = log.oldest().seq;
  ASSERT_GT(oldest, 2u);
  EXPECT_EQ(lines.more(out, 501, SIZE_MAX), oldest - 1);
  EXPECT_TRUE(out.empty());
  EXPECT_EQ(lines.told(), oldest - 1);
  EXPECT_EQ(lines.more(out, 501, SIZE_MAX), 0u);
  EXPECT_EQ(lines_of(out).size(), 502 - oldest);
}

TEST(LogLines, TheNewestEventsAreThoseThatFit) {
  StepLog log(1 << 20);
  EXPECT_EQ(newest_events(log, 1000).seq, 1u);
  StepEvent event;
  for (int i = 0; i < 50; ++i) append_step(log, event);
  EXPECT_EQ(newest_events(log, SIZE_MAX).seq, 1u);
  EXPECT_EQ(newest_events(log, 0).seq, 51u);
  for (std::size_t bytes : {700, 5000, 9000}) {
    const StepLog::Place place = newest_events(log, bytes);
    EXPECT_LE((log.end().at - place.at) * sizeof(std::uint64_t), bytes);
    EXPECT_GT((log.end().at - log.find(place.seq - 1).at) * sizeof(std::uint64_t), bytes);
  }
}

auto holds_the_last(std::size_t events, std::uint64_t least_newest) {
  return testing::Truly([=](const std::string& said) {
    const auto lines = lines_of(said.substr(said.find("{\"event\"")));
    if (lines.size() != events + 1 || lines[0].at("event") != "hello") return false;
    std::uint64_t seq = lines[1].at("seq").to_number<std::uint64_t>();
    for (std::size_t i = 1; i < lines.size(); ++i)
      if (lines[i].at("event") != "step" || lines[i].at("seq") != seq++) return false;
    return seq > least_newest;
  });
}

using FlightRecorderDeathTest = testing::Test;

TEST(FlightRecorderDeathTest, AFailedCheckSaysWhatTheLastStepsWere) {
  StepLog log(1 << 20);
  FlightRecorder recorder(log, "abc");
  StepEvent event;
  event.record.entries.resize(3);
  for (int i = 0; i < 7; ++i) append_step(log, event);
  EXPECT_EXIT(VT_CHECK(log.last_seq() == 0, "{} events", log.last_seq()),
              testing::KilledBySignal(SIGABRT), holds_the_last(7, 7));
  for (int i = 0; i < 1000; ++i) append_step(log, event);
  EXPECT_EXIT(std::abort(), testing::KilledBySignal(SIGABRT),
              holds_the_last(FlightRecorder::kMostEvents, 1007));
}

// While another thread appends, and the one that aborts holds the lock under which it does.
TEST(FlightRecorderDeathTest, NeitherWaitsNorNeedsMemory) {
  StepLog log(1 << 20);
  StepEvent event;
  for (int i = 0; i < 100; ++i) append_step(log, event);
  {
    FlightRecorder recorder(log, "abc");
    const std::size_t before = allocation_count();
    testing::internal::CaptureStderr();
    const std::size_t captured = allocation_count();
    recorder.say();
    EXPECT_EQ(allocation_count(), captured);
    EXPECT_GE(captured, before);
    EXPECT_EQ(lines_of(testing::internal::GetCapturedStderr()).size(),
              FlightRecorder::kMostEvents + 1);
  }
  // Events that are too large for it are left out with all before them.
  StepLog large(8 << 20);
  FlightRecorder recorder(large, "abc");
  append_step(large, event);
  event.record.entries.resize(4000);
  append_step(large, event);
  event.record.entries.resize(1);
  append_step(large, event);
  EXPECT_EXIT(std::abort(), testing::KilledBySignal(SIGABRT), holds_the_last(1, 3));
}

TEST(FlightRecorderDeathTest, SaysNothingWhereNothingIsKept) {
  StepLog off(0);
  FlightRecorder recorder(off, "abc");
  EXPECT_EXIT(std::abort(), testing::KilledBySignal(SIGABRT), testing::StrEq(""));
  {
    StepLog log(1 << 20);
    FlightRecorder gone(log, "abc");
  }
  EXPECT_EXIT(std::abort(), testing::KilledBySignal(SIGABRT), testing::StrEq(""));
}

}  // namespace
}  // namespace vitrine
