// Parses requests with Beast and adds the checks that Beast lacks. Only parser.cpp includes Beast's
// headers.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/http.h"

namespace vitrine {

class RequestParser {
 public:
  RequestParser(int max_header_bytes, std::int64_t max_body_bytes);
  ~RequestParser();

  // `head` is one that HeadScanner found complete. Fills method, path, query and headers.
  std::optional<HttpError> head(std::string_view head, HttpRequest& request);
  // Takes bytes of the body from the front of `data`; says how many were used. What is left is the
  // start of a line that is not complete yet, or belongs to the next request.
  std::optional<HttpError> body(std::string_view data, std::size_t& used);

  // After head().
  bool done() const;
  bool keep_alive() const;
  bool http11() const { return http11_; }
  std::int64_t body_bytes() const;
  std::string take_body();

 private:
  struct Beast;
  std::optional<HttpError> check_framing(const HttpRequest& request);

  std::unique_ptr<Beast> beast_;
  const std::int64_t max_body_bytes_;
  bool http11_ = false;
  std::int64_t wire_bytes_ = 0;  // of the body, with its framing
};

}  // namespace vitrine
