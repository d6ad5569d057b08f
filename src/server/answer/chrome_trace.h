// Events of Chrome's trace format, which ui.perfetto.dev opens.
#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"

namespace vitrine {

// Times are given in nanoseconds of the process and written as microseconds since `zero`.
class ChromeTrace {
 public:
  explicit ChromeTrace(std::int64_t zero) : zero_(zero) {}

  // "process_name", "thread_name".
  void name(const char* what, int pid, std::uint64_t tid, const std::string& text) {
    events_.push_back(json::object{
        {"ph", "M"}, {"name", what}, {"pid", pid}, {"tid", tid}, {"args", {{"name", text}}}});
  }
  // Its exact times stand in `args`.
  void slice(std::string name, int pid, std::uint64_t tid, std::int64_t start, std::int64_t length,
             json::object args = {}) {
    args.emplace("start_ns", start);
    args.emplace("ns", length);
    events_.push_back(json::object{{"ph", "X"},
                                   {"name", std::move(name)},
                                   {"pid", pid},
                                   {"tid", tid},
                                   {"ts", us(start - zero_)},
                                   {"dur", us(length)},
                                   {"args", std::move(args)}});
  }
  void counter(std::string name, int pid, std::int64_t at, json::object values) {
    events_.push_back(json::object{{"ph", "C"},
                                   {"name", std::move(name)},
                                   {"pid", pid},
                                   {"ts", us(at - zero_)},
                                   {"args", std::move(values)}});
  }
  // In the order of time, what encloses before what is within.
  void sort();
  json::array take() { return std::move(events_); }

 private:
  static double us(std::int64_t ns) { return static_cast<double>(ns) / 1e3; }

  const std::int64_t zero_;
  json::array events_;
};

}  // namespace vitrine
