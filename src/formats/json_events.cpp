#include "formats/json_events.h"

#include <boost/json/basic_parser_impl.hpp>
#include <optional>
#include <string>

#include "base/json.h"
#include "formats/detail.h"

namespace vitrine::detail {
namespace {

// What Boost.JSON's basic_parser calls; false stops it.
class Handler {
 public:
  static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);

  Handler(JsonSink& sink, std::string_view what, std::size_t max_text)
      : sink_(sink), what_(what), max_text_(max_text) {}
  const std::optional<Error>& failure() const { return failure_; }

  using Code = json::error_code;
  using View = json::string_view;
  bool on_document_begin(Code&) { return true; }
  bool on_document_end(Code&) { return true; }
  bool on_object_begin(Code& e) { return send(JsonEvent::kObject, e); }
  bool on_object_end(std::size_t, Code& e) { return send(JsonEvent::kObjectEnd, e); }
  bool on_array_begin(Code& e) { return send(JsonEvent::kArray, e); }
  bool on_array_end(std::size_t, Code& e) { return send(JsonEvent::kArrayEnd, e); }
  bool on_key_part(View part, std::size_t, Code& e) { return append(part, e); }
  bool on_key(View part, std::size_t, Code& e) {
    return append(part, e) && send_text(JsonEvent::kKey, e);
  }
  bool on_string_part(View part, std::size_t, Code& e) { return append(part, e); }
  bool on_string(View part, std::size_t, Code& e) {
    return append(part, e) && send_text(JsonEvent::kString, e);
  }
  bool on_number_part(View, Code&) { return true; }
  bool on_int64(std::int64_t value, View, Code& e) {
    return value < 0 ? send(JsonEvent::kNumber, e)
                     : send(JsonEvent::kUnsigned, e, static_cast<std::uint64_t>(value));
  }
  bool on_uint64(std::uint64_t value, View, Code& e) {
    return send(JsonEvent::kUnsigned, e, value);
  }
  bool on_double(double, View, Code& e) { return send(JsonEvent::kNumber, e); }
  bool on_bool(bool, Code& e) { return send(JsonEvent::kBool, e); }
  bool on_null(Code& e) { return send(JsonEvent::kNull, e); }
  bool on_comment_part(View, Code&) { return true; }
  bool on_comment(View, Code&) { return true; }

 private:
  bool stop(Error error, Code& code) {
    failure_ = std::move(error);
    code = json::make_error_code(json::error::syntax);
    return false;
  }
  bool append(View part, Code& code) {
    if (part.size() > max_text_ - text_.size())
      return stop(make_error(ErrorCode::kTooLarge, "{}: the JSON text {} has over {} bytes", what_,
                             quote_name(text_.empty() ? std::string_view(part.data(), part.size())
                                                      : std::string_view(text_)),
                             max_text_),
                  code);
    text_.append(part.data(), part.size());
    return true;
  }
  bool send_text(JsonEvent event, Code& code) {
    bool more = pass_on(sink_.event(event, text_, 0), code);
    text_.clear();
    return more;
  }
  bool send(JsonEvent event, Code& code, std::uint64_t number = 0) {
    return pass_on(sink_.event(event, {}, number), code);
  }
  bool pass_on(Status status, Code& code) { return status.ok() || stop(status.error(), code); }

  JsonSink& sink_;
  std::string_view what_;
  std::size_t max_text_;
  std::string text_;
  std::optional<Error> failure_;
};

}  // namespace

Status parse_json_events(std::string_view text, std::string_view what, std::size_t max_text,
                         JsonSink& sink) {
  json::parse_options options;
  options.max_depth = 16;
  json::basic_parser<Handler> parser(options, sink, what, max_text);
  json::error_code error;
  std::size_t used = parser.write_some(false, text.data(), text.size(), error);
  if (parser.handler().failure()) return *parser.handler().failure();
  if (error)
    return make_error(ErrorCode::kMalformed, "{}: not valid JSON at byte {}: {}", what, used,
                      error.message());
  if (text.find_first_not_of(" \t\r\n", used) != std::string_view::npos)
    return make_error(ErrorCode::kMalformed, "{}: text after the JSON document at byte {}", what,
                      used);
  return Ok{};
}

}  // namespace vitrine::detail
