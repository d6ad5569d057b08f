#include "trace/flight_recorder.h"

#include <unistd.h>

#include <algorithm>

#include "trace/event_json.h"
#include "trace/log_lines.h"

namespace vitrine {
namespace {

// What an event takes as text at most: rows this many times what they take packed, and all names.
constexpr std::size_t kTextByByte = 8, kNames = 4096;

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

FlightRecorder::FlightRecorder(const StepLog& log, const std::string& epoch) : log_(log) {
  if (!log.on()) return;
  words_.reserve(kMostPacked / sizeof(std::uint64_t));
  line_.reserve(kTextByByte * kMostPacked + kNames);
  line_ += "{\"event\":\"hello\",\"schema\":1,\"epoch\":\"" + epoch + "\"}\n";
  set_last_words(*this);
}

FlightRecorder::~FlightRecorder() { drop_last_words(*this); }

void FlightRecorder::say() noexcept {
  write_all(line_);
  const std::uint64_t newest = log_.last_seq();
  StepLog::Place place = newest_events(log_, kMostPacked);
  if (newest >= kMostEvents && place.seq <= newest - kMostEvents)
    place = log_.find(newest - kMostEvents + 1);
  while (place.seq <= newest) {
    log_.read(place, words_, 1);  // one event
    if (words_.empty()) return;
    line_.clear();
    StepLog::each(words_, [&](const PackedEvent& event) { append_event_line(line_, event); });
    write_all(line_);
  }
}

}  // namespace vitrine
