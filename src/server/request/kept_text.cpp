#include "server/request/kept_text.h"

#include <charconv>

#include "base/utf8.h"
#include "server/request/json_fields.h"

namespace vitrine {
namespace {

// "choice=N" or nothing.
std::optional<ApiError> read_choice(std::string_view query, int& choice) {
  if (query.empty()) return std::nullopt;
  constexpr std::string_view kName = "choice=";
  if (!query.starts_with(kName))
    return ApiError{
        400, "invalid_request_error",
        fmt::format("unknown query {}: only choice is allowed", describe(json::value(query))),
        "query", "unknown_parameter"};
  query.remove_prefix(kName.size());
  auto [end, error] = std::from_chars(query.data(), query.data() + query.size(), choice);
  if (error == std::errc() && end == query.data() + query.size() && choice >= 0)
    return std::nullopt;
  return bad_field("choice", fmt::format("choice: found {}, allowed a whole number from 0 on",
                                         describe(json::value(query))));
}

}  // namespace

ApiError not_kept(const Api& api, std::string_view name) {
  const std::string shown = describe(json::value(name));
  std::string message;
  if (api.texts.mode() == RecordMode::kNone)
    message = fmt::format("request {}: this server keeps no texts (--record none)", shown);
  else
    message = fmt::format(
        "request {} was not recorded, or is no longer kept: requests with \"vitrine\": "
        "{{\"record\": "
        "true}} are, as many as fit into {} MiB (--record-mib)",
        shown, api.texts.most_bytes() >> 20);
  return {404, "invalid_request_error", std::move(message), "id", "not_recorded"};
}

std::optional<ApiError> find_text(const Api& api, const HttpRequest& http, Text& out) {
  int choice = 0;
  if (auto error = read_choice(http.query, choice)) return error;
  const std::vector<Texts::Kept> found = api.texts.find(http.argument, http);
  if (found.empty()) return not_kept(api, http.argument);
  const bool by_number = found.size() == 1 && http.query.empty();
  for (const Texts::Kept& kept : found) {
    if (!by_number && kept.index != choice) continue;
    std::optional<Text> text = api.texts.get(kept.id);
    if (!text) return not_kept(api, http.argument);  // it has just gone
    out = std::move(*text);
    return std::nullopt;
  }
  return ApiError{
      404, "invalid_request_error",
      fmt::format("choice: found {}, the choices of request {} that are kept are {} to {}", choice,
                  describe(json::value(http.argument)), found.front().index, found.back().index),
      "choice", "not_found"};
}

}  // namespace vitrine
