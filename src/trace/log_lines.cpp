#include "trace/log_lines.h"

#include <fmt/format.h>

#include <iterator>

#include "trace/event_json.h"

namespace vitrine {

std::uint64_t LogLines::more(std::string& out, std::uint64_t last, std::size_t most) {
  while (true) {
    StepLog::each(words_, [&](const PackedEvent& event) {
      if (event.seq > last) return;
      append_event_line(out, event);
      told_ = event.seq;
    });
    words_.clear();
    if (told_ >= last || out.size() >= most) return 0;
    const std::uint64_t lost = log_.read(place_, words_, most / 2);
    told_ += lost;
    if (lost > 0 || words_.empty()) return lost;
  }
}

StepLog::Place newest_events(const StepLog& log, std::size_t bytes) {
  const StepLog::Place end = log.end();
  auto fits = [&](std::uint64_t seq) {
    const std::uint64_t at = log.find(seq).at;
    return at >= end.at || end.at - at <= bytes / sizeof(std::uint64_t);
  };
  std::uint64_t low = log.oldest().seq, high = end.seq;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (fits(middle))
      high = middle;
    else
      low = middle + 1;
  }
  return log.find(low);
}

void append_gap_line(std::string& out, std::uint64_t from, std::uint64_t to) {
  fmt::format_to(std::back_inserter(out), "{{\"event\":\"gap\",\"from\":{},\"to\":{}}}\n", from,
                 to);
}

}  // namespace vitrine
