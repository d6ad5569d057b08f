// The program's log: one line of JSON per event to stderr,
// {"time":..,"level":..,"event":..,fields}.
//
// Any thread may log. A line is written when its LogLine ends, in one piece. Logging never waits:
// lines that stderr has no room for, or that find no memory, are counted and dropped, and a later
// line says how many. Long
// values are cut; a field that would make the line longer than 4 KiB is left out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vitrine {

enum class LogLevel { kDebug, kInfo, kWarn, kError };

// Lines below the level are not written; kInfo until set.
void set_log_level(LogLevel level);

class LogLine {
 public:
  LogLine(LogLevel level, std::string_view event);
  ~LogLine();
  LogLine(const LogLine&) = delete;

  LogLine& field(std::string_view name, std::string_view value);
  LogLine& field(std::string_view name, double value);
  LogLine& field(std::string_view name, std::int64_t value);

 private:
  template <typename F>
  LogLine& attempt(F f);
  // `value` as JSON.
  void add(std::string_view name, std::string_view value);

  bool on_;
  std::string line_;
};

}  // namespace vitrine
