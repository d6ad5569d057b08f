#include "base/log.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <ctime>
#include <mutex>
#include <new>

#include "base/utf8.h"

namespace vitrine {
namespace {

// A line is at most what a pipe takes in one piece. poll() says that a pipe is writable when it has
// room for that much, so a reader that has stopped makes us lose lines, never wait.
constexpr std::size_t kMaxLine = 4096;
constexpr std::size_t kMaxValue = 1024;

std::atomic<int> threshold{static_cast<int>(LogLevel::kInfo)};
std::mutex write_mutex;
std::uint64_t lost_lines = 0;  // under write_mutex

const char* level_name(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarn:
      return "warn";
    case LogLevel::kError:
      return "error";
  }
  return "unknown";
}

std::string now_text() {
  auto now = std::chrono::system_clock::now();
  std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  auto millis =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", utc.tm_year + 1900,
                     utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, millis);
}

void append_quoted(std::string& out, std::string_view text) {
  std::string clean = utf8_sanitize(text.substr(0, kMaxValue));
  out += '"';
  for (char c : clean) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\u{:04x}", byte);
    } else {
      out += c;
    }
  }
  out += '"';
}

bool write_line(const std::string& line) {
  pollfd ready{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&ready, 1, 0) != 1 || (ready.revents & (POLLOUT | POLLERR)) != POLLOUT) return false;
  return ::write(STDERR_FILENO, line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

}  // namespace

void set_log_level(LogLevel level) { threshold = static_cast<int>(level); }

// A line for which there is no memory is lost, like one for which stderr has no room.
template <typename F>
LogLine& LogLine::attempt(F f) {
  if (on_) try {
      f();
    } catch (const std::bad_alloc&) {
      on_ = false;
      std::lock_guard lock(write_mutex);
      ++lost_lines;
    }
  return *this;
}

LogLine::LogLine(LogLevel level, std::string_view event)
    : on_(static_cast<int>(level) >= threshold.load(std::memory_order_relaxed)) {
  attempt([&] {
    line_ = fmt::format(R"({{"time":"{}","level":"{}","event":)", now_text(), level_name(level));
    append_quoted(line_, event);
  });
}

LogLine::~LogLine() {
  attempt([&] {
    line_ += "}\n";
    std::lock_guard lock(write_mutex);
    if (lost_lines > 0) {
      std::string note = fmt::format(R"({{"time":"{}","level":"warn","event":"log lines lost",)"
                                     R"("lines":{}}})"
                                     "\n",
                                     now_text(), lost_lines);
      if (write_line(note)) lost_lines = 0;
    }
    if (!write_line(line_)) ++lost_lines;
  });
}

void LogLine::add(std::string_view name, std::string_view value) {
  std::string piece = ",";
  append_quoted(piece, name);
  piece += ':';
  piece += value;
  if (line_.size() + piece.size() + 2 <= kMaxLine) line_ += piece;
}

LogLine& LogLine::field(std::string_view name, std::string_view value) {
  return attempt([&] {
    std::string quoted;
    append_quoted(quoted, value);
    add(name, quoted);
  });
}

LogLine& LogLine::field(std::string_view name, double value) {
  if (!std::isfinite(value)) return field(name, std::string_view("not finite"));
  return attempt([&] { add(name, fmt::format("{:.6g}", value)); });
}

LogLine& LogLine::field(std::string_view name, std::int64_t value) {
  return attempt([&] { add(name, std::to_string(value)); });
}

}  // namespace vitrine
