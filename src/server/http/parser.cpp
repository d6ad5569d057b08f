#include "server/http/parser.h"

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "server/http/head.h"

namespace vitrine {
namespace {

namespace http = boost::beast::http;

// The line with a chunk's size and extensions, or all trailers.
constexpr std::size_t kMaxChunkLine = 8 << 10;
// How many bytes on the wire a byte of the body may cost (a chunk of one byte costs six), beside a
// constant.
constexpr std::int64_t kMaxFraming = 8;
constexpr std::int64_t kFramingFree = 64 << 10;

HttpError malformed(std::string message) { return {400, std::move(message)}; }

HttpError too_large(std::int64_t limit) {
  return {413, fmt::format("the body has over {} bytes", limit)};
}

bool has_bare_line_feed(std::string_view text) {
  for (std::size_t i = text.find('\n'); i != text.npos; i = text.find('\n', i + 1))
    if (i == 0 || text[i - 1] != '\r') return true;
  return false;
}

}  // namespace

struct RequestParser::Beast {
  http::request_parser<http::string_body> parser;
};

RequestParser::RequestParser(int max_header_bytes, std::int64_t max_body_bytes)
    : beast_(std::make_unique<Beast>()), max_body_bytes_(max_body_bytes) {
  beast_->parser.eager(true);
  beast_->parser.header_limit(static_cast<std::uint32_t>(max_header_bytes) + 4);
  beast_->parser.body_limit(static_cast<std::uint64_t>(max_body_bytes));
}

RequestParser::~RequestParser() = default;

std::optional<HttpError> RequestParser::head(std::string_view head, HttpRequest& request) {
  auto& parser = beast_->parser;
  boost::system::error_code error;
  std::size_t used = parser.put({head.data(), head.size()}, error);
  if (error == http::error::need_more) error = {};  // of the body
  if (error == http::error::body_limit) return too_large(max_body_bytes_);
  if (error || used != head.size() || !parser.is_header_done())
    return malformed("the head of the request is malformed: " + error.message());
  const auto& message = parser.get();
  http11_ = message.version() == 11;
  request.method = std::string(message.method_string());
  std::string_view target(message.target().data(), message.target().size());
  auto question = target.find('?');
  request.path = std::string(target.substr(0, question));
  if (question != target.npos) request.query = std::string(target.substr(question + 1));
  for (const auto& field : message)
    request.headers.emplace_back(to_lower({field.name_string().data(), field.name_string().size()}),
                                 std::string(field.value().data(), field.value().size()));
  return check_framing(request);
}

// Where the body ends must be beyond doubt: one Content-Length of plain digits, or chunked and
// nothing else.
std::optional<HttpError> RequestParser::check_framing(const HttpRequest& request) {
  int lengths = 0, codings = 0;
  for (const auto& [name, value] : request.headers) {
    if (name == "content-length") {
      if (++lengths > 1) return malformed("the request has more than one Content-Length");
      if (value.empty() || value.size() > 18 || value.find_first_not_of("0123456789") != value.npos)
        return malformed("Content-Length is not a number of at most 18 digits");
    } else if (name == "transfer-encoding") {
      if (++codings > 1 || !equals_ignoring_case(value, "chunked"))
        return malformed("Transfer-Encoding can only be chunked");
      if (!http11_) return malformed("Transfer-Encoding needs HTTP/1.1");
    }
  }
  if (lengths && codings)
    return malformed("the request has both Content-Length and Transfer-Encoding");
  return std::nullopt;
}

std::optional<HttpError> RequestParser::body(std::string_view data, std::size_t& used) {
  auto& parser = beast_->parser;
  boost::system::error_code error;
  used = data.empty() ? 0 : parser.put({data.data(), data.size()}, error);
  wire_bytes_ += static_cast<std::int64_t>(used);
  if (error == http::error::body_limit) return too_large(max_body_bytes_);
  if (error && error != http::error::need_more)
    return malformed("the body of the request is malformed: " + error.message());
  if (wire_bytes_ > kMaxFraming * max_body_bytes_ + kFramingFree) return too_large(max_body_bytes_);
  if (parser.is_done()) return std::nullopt;
  auto rest = data.substr(used);
  if (rest.size() > kMaxChunkLine)
    return malformed(
        fmt::format("a chunk's head or the trailers have over {} bytes", kMaxChunkLine));
  if (has_bare_line_feed(rest))
    return malformed("a line of the chunked body ends in a line feed without a carriage return");
  return std::nullopt;
}

bool RequestParser::done() const { return beast_->parser.is_done(); }
bool RequestParser::keep_alive() const { return beast_->parser.keep_alive(); }

std::int64_t RequestParser::body_bytes() const {
  return static_cast<std::int64_t>(beast_->parser.get().body().size());
}

std::string RequestParser::take_body() { return std::move(beast_->parser.get().body()); }

}  // namespace vitrine
