#include "load/http_parser.h"

#include <algorithm>
#include <charconv>

namespace vitrine::load {
namespace {

constexpr std::size_t kMaxHead = 64 << 10;
constexpr std::size_t kMaxLine = 4 << 20;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool equal_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool parse_unsigned(std::string_view text, std::uint64_t& value, int base) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

// Collects up to the end of a line, or of the head: an empty line. True when it is there.
bool ResponseParser::take_line(std::string_view& bytes) {
  std::string_view end = state_ == State::kHead ? "\r\n\r\n" : "\r\n";
  while (!bytes.empty()) {
    std::size_t at = std::min(bytes.find('\n'), bytes.size() - 1) + 1;
    line_ += bytes.substr(0, at);
    bytes.remove_prefix(at);
    if (line_.ends_with(end)) return true;
    if (line_.size() > kMaxHead) {
      state_ = State::kBad;
      return false;
    }
  }
  return false;
}

bool ResponseParser::feed(std::string_view bytes, std::string& body) {
  while (!bytes.empty() && state_ != State::kBad) {
    switch (state_) {
      case State::kHead:
        if (take_line(bytes) && !parse_head()) state_ = State::kBad;
        break;
      case State::kChunkSize:
        if (take_line(bytes)) state_ = parse_chunk_size();
        break;
      case State::kChunkEnd:
        if (take_line(bytes)) {
          state_ = line_ == "\r\n" ? State::kChunkSize : State::kBad;
          line_.clear();
        }
        break;
      case State::kTrailer:
        if (take_line(bytes)) {
          if (line_ == "\r\n") state_ = State::kDone;
          line_.clear();
        }
        break;
      case State::kLength:
      case State::kChunkData: {
        auto n = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
        body += bytes.substr(0, n);
        bytes.remove_prefix(n);
        left_ -= n;
        if (left_ == 0) state_ = state_ == State::kLength ? State::kDone : State::kChunkEnd;
        break;
      }
      case State::kUntilClose:
        body += bytes;
        bytes = {};
        break;
      case State::kDone:  // bytes after the response
      case State::kBad:
        state_ = State::kBad;
        break;
    }
  }
  return state_ != State::kBad;
}

bool ResponseParser::close() {
  if (state_ == State::kUntilClose) state_ = State::kDone;
  return done();
}

bool ResponseParser::parse_head() {
  std::string head = std::move(line_);
  line_.clear();
  std::string_view rest = head;
  bool first = true;
  while (!rest.empty()) {
    std::size_t end = rest.find("\r\n");
    if (end == std::string_view::npos) return false;
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 2);
    if (line.empty()) break;
    if (!(first ? parse_status_line(line) : parse_header(line))) return false;
    first = false;
  }
  if (first) return false;
  if (status_ < 200) {  // a provisional answer; the real one follows
    status_ = 0;
    return true;
  }
  if (status_ == 204 || status_ == 304)
    state_ = State::kDone;
  else if (chunked_)
    state_ = State::kChunkSize;
  else if (has_length_)
    state_ = left_ == 0 ? State::kDone : State::kLength;
  else
    state_ = State::kUntilClose, keep_alive_ = false;
  return true;
}

bool ResponseParser::parse_status_line(std::string_view line) {
  if (line.size() < 12 || !line.starts_with("HTTP/1.") || line[8] != ' ') return false;
  std::uint64_t status = 0;
  if (!parse_unsigned(line.substr(9, 3), status, 10) || status < 100) return false;
  status_ = static_cast<int>(status);
  keep_alive_ = line[7] != '0';
  return true;
}

bool ResponseParser::parse_header(std::string_view line) {
  std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return false;
  std::string_view name = line.substr(0, colon), value = trim(line.substr(colon + 1));
  if (equal_name(name, "transfer-encoding")) {
    chunked_ = equal_name(value, "chunked");
    return chunked_;
  }
  if (equal_name(name, "content-length")) return has_length_ = parse_unsigned(value, left_, 10);
  if (equal_name(name, "connection")) keep_alive_ = keep_alive_ && !equal_name(value, "close");
  return true;
}

ResponseParser::State ResponseParser::parse_chunk_size() {
  std::string_view line = std::string_view(line_).substr(0, line_.size() - 2);
  bool ok = parse_unsigned(trim(line.substr(0, line.find(';'))), left_, 16);
  line_.clear();
  if (!ok) return State::kBad;
  return left_ == 0 ? State::kTrailer : State::kChunkData;
}

bool SseParser::take(char c) {
  bool skip = c == '\n' && after_cr_;
  after_cr_ = c == '\r';
  if (skip) return false;
  if (c == '\r' || c == '\n') return end_line();
  if (line_.size() + data_.size() < kMaxLine)
    line_ += c;
  else
    overflow_ = true;
  return false;
}

bool SseParser::end_line() {
  if (line_.empty()) return has_data_;
  std::string_view line = line_;
  std::size_t colon = std::min(line.find(':'), line.size());
  if (line.substr(0, colon) == "data") {
    std::string_view value = line.substr(std::min(colon + 1, line.size()));
    if (value.starts_with(' ')) value.remove_prefix(1);
    if (has_data_) data_ += '\n';
    data_ += value;
    has_data_ = true;
  }
  line_.clear();
  return false;
}

}  // namespace vitrine::load
