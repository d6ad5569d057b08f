#include "server/http/response.h"

#include <ctime>

namespace vitrine {
namespace {

const char* reason(int status) {
  struct Entry {
    int status;
    const char* text;
  };
  static constexpr Entry kReasons[] = {
      {100, "Continue"},
      {200, "OK"},
      {204, "No Content"},
      {304, "Not Modified"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {408, "Request Timeout"},
      {409, "Conflict"},
      {413, "Content Too Large"},
      {414, "URI Too Long"},
      {417, "Expectation Failed"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {503, "Service Unavailable"},
      {504, "Gateway Timeout"},
      {505, "HTTP Version Not Supported"},
  };
  for (const auto& entry : kReasons)
    if (entry.status == status) return entry.text;
  return "Status";
}

void append_clean(std::string& out, std::string_view text) {
  for (char c : text)
    if (c != '\r' && c != '\n' && c != '\0') out += c;
}

std::string date() {
  static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", kDays[utc.tm_wday], utc.tm_mday,
                     kMonths[utc.tm_mon], utc.tm_year + 1900, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

}  // namespace

std::string response_head(int status, const Headers& headers) {
  std::string out = fmt::format("HTTP/1.1 {} {}\r\nDate: {}\r\n", status, reason(status), date());
  for (const auto& [name, value] : headers) {
    append_clean(out, name);
    out += ": ";
    append_clean(out, value);
    out += "\r\n";
  }
  out += "\r\n";
  return out;
}

HttpBody plain_error(const HttpError& error) {
  return {"text/plain; charset=utf-8", error.message + "\n"};
}

HttpError too_many_answers() {
  return {503, "too many large answers are not read yet", "unavailable"};
}

std::string_view HttpRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers)
    if (key == name) return value;
  return {};
}

}  // namespace vitrine
