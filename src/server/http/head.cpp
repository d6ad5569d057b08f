#include "server/http/head.h"

#include <algorithm>

namespace vitrine {
namespace {

constexpr std::size_t kMaxRequestLine = 16 << 10;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool is_token_char(char c) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) return true;
  return c != 0 && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_char);
}

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

std::string to_lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), lower);
  return out;
}

std::size_t HeadScanner::scan(std::string_view data) {
  while (at_ < data.size() && !error_)
    if (next(data)) return at_;
  return 0;
}

// Takes one byte; true when it completed the head.
bool HeadScanner::next(std::string_view data) {
  const char c = data[at_];
  const auto byte = static_cast<unsigned char>(c);
  const bool line_begins = at_ == line_start_;
  if (at_ >= static_cast<std::size_t>(max_bytes_)) {
    if (lines_ == 0) fail(414, fmt::format("the request line has over {} bytes", max_bytes_));
    fail(431, fmt::format("the head of the request has over {} bytes", max_bytes_));
    return false;
  }
  ++at_;
  if (after_cr_) {
    if (c != '\n') {
      fail(400, "a carriage return in the head is not followed by a line feed");
      return false;
    }
    after_cr_ = false;
    std::string_view line = data.substr(line_start_, at_ - 2 - line_start_);
    line_start_ = at_;
    if (line.empty() && lines_ > 0) return true;
    end_line(line);
    return false;
  }
  if (c == '\r') {
    after_cr_ = true;
  } else if (c == '\n') {
    fail(400, "a line of the head ends in a line feed without a carriage return");
  } else if ((byte < 0x20 && c != '\t') || byte == 0x7f) {
    fail(400, "a control character in the head of the request");
  } else if (line_begins && (c == ' ' || c == '\t')) {
    fail(400, "a line of the head begins with white space");
  } else if (lines_ == 0 && at_ - line_start_ > kMaxRequestLine) {
    fail(414, fmt::format("the request line has over {} bytes", kMaxRequestLine));
  }
  return false;
}

void HeadScanner::end_line(std::string_view line) {
  if (lines_++ == 0)
    check_request_line(line);
  else if (lines_ - 1 > max_headers_)
    fail(431, fmt::format("the request has over {} header fields", max_headers_));
  else
    check_field(line);
}

void HeadScanner::check_request_line(std::string_view line) {
  auto first = line.find(' ');
  auto second = first == line.npos ? line.npos : line.find(' ', first + 1);
  if (second == line.npos || line.find(' ', second + 1) != line.npos)
    return fail(400, "the request line is not METHOD TARGET VERSION");
  auto method = line.substr(0, first), target = line.substr(first + 1, second - first - 1);
  auto version = line.substr(second + 1);
  if (!is_token(method)) return fail(400, "the method is not a token");
  if (target.empty() || std::any_of(target.begin(), target.end(),
                                    [](unsigned char c) { return c <= 0x20 || c >= 0x7f; }))
    return fail(400, "the request target is empty or not printable ASCII");
  if (version == "HTTP/1.1" || version == "HTTP/1.0") return;
  bool numbered = version.size() == 8 && version.substr(0, 5) == "HTTP/" && is_digit(version[5]) &&
                  version[6] == '.' && is_digit(version[7]);
  if (numbered && version[5] != '1' && version[5] != '0')
    return fail(505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
  fail(400, "the version of the request is neither HTTP/1.0 nor HTTP/1.1");
}

void HeadScanner::check_field(std::string_view line) {
  auto colon = line.find(':');
  if (colon == line.npos) return fail(400, "a line of the head has no colon");
  if (!is_token(line.substr(0, colon))) fail(400, "the name of a header field is not a token");
}

void HeadScanner::fail(int status, std::string message) {
  if (!error_) error_ = HttpError{status, std::move(message)};
}

}  // namespace vitrine
