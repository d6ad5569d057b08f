#include "server/error.h"

#include "base/json.h"
#include "base/utf8.h"

namespace vitrine {

std::string error_body(const ApiError& error) {
  auto text_or_null = [](const std::string& text) -> json::value {
    if (text.empty()) return nullptr;
    return json::string(utf8_sanitize(text));
  };
  json::object inner;
  inner["message"] = utf8_sanitize(error.message);
  inner["type"] = utf8_sanitize(error.type);
  inner["param"] = text_or_null(error.param);
  inner["code"] = text_or_null(error.code);
  json::object outer;
  outer["error"] = std::move(inner);
  return json::serialize(outer);
}

ApiError bad_field(std::string param, std::string message, std::string code) {
  return {400, "invalid_request_error", std::move(message), std::move(param), std::move(code)};
}

ApiError no_tokenizer() { return bad_field("", "the model has no tokenizer", "no_tokenizer"); }

ApiError engine_error(const Error& error) {
  switch (error.code) {
    case ErrorCode::kBusy:
      return {429, "rate_limit_error", error.message, "", "queue_full"};
    case ErrorCode::kInvalid:
      return bad_field("", error.message);
    case ErrorCode::kTooLarge:
      return bad_field("", error.message, "context_length_exceeded");
    default:
      return {500, "server_error", error.message, "", ""};
  }
}

ApiError transport_error(const HttpError& error) {
  const char* type = error.status >= 500   ? "server_error"
                     : error.status == 429 ? "rate_limit_error"
                                           : "invalid_request_error";
  return {error.status, type, error.message, "", error.code};
}

ApiError operator_only(std::string_view path) {
  return {403, "permission_error",
          fmt::format("{}: it tells about all keys, so a key with role=operator is needed",
                      shortened(path, 100)),
          "", "operator_only"};
}

ApiError still_loading() {
  return {503, "server_error", "the model is being loaded; /ready has the progress", "", "loading"};
}

ApiError out_of_memory() {
  return {503, "server_error", "there is no memory for this request now", "", "unavailable"};
}

ApiError shutting_down() {
  return {503, "server_error", "the server is shutting down", "", "shutting_down"};
}

}  // namespace vitrine
