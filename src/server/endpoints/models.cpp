// GET /v1/models, and one of them by name.
#include "server/api.h"
#include "server/request/prompt_fields.h"

namespace vitrine {
namespace {

constexpr const char* kPath = "/v1/models";

json::object model_json(const Api& api) {
  return {{"id", api.model_name},
          {"object", "model"},
          {"created", api.started_unix},
          {"owned_by", "vitrine"},
          {"max_model_len", api.context}};
}

std::string percent_decoded(std::string_view text) {
  auto hex = [](char c) {
    return c >= '0' && c <= '9'                 ? c - '0'
           : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                : -1;
  };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    bool escape =
        text[i] == '%' && i + 2 < text.size() && hex(text[i + 1]) >= 0 && hex(text[i + 2]) >= 0;
    out += escape ? static_cast<char>(hex(text[i + 1]) * 16 + hex(text[i + 2])) : text[i];
    if (escape) i += 2;
  }
  return out;
}

Reply models(const Api& api, const HttpRequest& http) {
  if (http.path == kPath)
    return to_json(json::object{{"object", "list"}, {"data", json::array{model_json(api)}}});
  std::string name = percent_decoded(http.argument);
  if (name == api.model_name) return to_json(model_json(api));
  return unknown_model(api, name);
}

}  // namespace

extern const Endpoint kEndpoint_models;
const Endpoint kEndpoint_models{"GET", {kPath, "/v1/models/*"}, reply_at_once<models>};

}  // namespace vitrine
