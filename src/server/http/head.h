// The head of a request, before it is parsed: line by line, as it arrives.
//
// Beast's parser is lenient where two servers could disagree about what a request is (folded lines,
// bytes that end a line elsewhere) and says so only when the head is complete. This scanner refuses
// such a head at the first wrong byte, and holds the limits.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/http/http.h"

namespace vitrine {

class HeadScanner {
 public:
  HeadScanner(int max_bytes, int max_headers) : max_bytes_(max_bytes), max_headers_(max_headers) {}

  // `data` is everything received of this request so far; it only grows between calls. Each byte is
  // looked at once. Returns the length of the head once it is complete, 0 before.
  std::size_t scan(std::string_view data);
  const std::optional<HttpError>& error() const { return error_; }

 private:
  bool next(std::string_view data);
  void end_line(std::string_view line);
  void check_request_line(std::string_view line);
  void check_field(std::string_view line);
  void fail(int status, std::string message);

  const int max_bytes_, max_headers_;
  std::size_t at_ = 0, line_start_ = 0;
  int lines_ = 0;
  bool after_cr_ = false;
  std::optional<HttpError> error_;
};

// Letters, digits and the punctuation that names in HTTP may have.
bool is_token(std::string_view text);
bool equals_ignoring_case(std::string_view a, std::string_view b);
std::string to_lower(std::string_view text);

}  // namespace vitrine
