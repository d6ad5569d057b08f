// POST /api/requests/ID/hold: lets a recorded request that runs draw so many more tokens and no more, or
// as many as it likes again.
#include "server/api.h"
#include "server/request/json_fields.h"
#include "server/request/kept_text.h"

namespace vitrine {
namespace {

Reply hold(const Api& api, const HttpRequest& http) {
  Text text;
  if (auto error = find_text(api, http, text)) return *error;
  json::value body;
  if (auto error = parse_body(http.body, body)) return *error;
  JsonFields fields(body.get_object());
  const auto allow = fields.integer("allow", 0, api.context);
  const bool release = fields.boolean("release").value_or(false);
  if (allow.has_value() == release)
    fields.fail("allow", "allowed is one of \"allow\": a number of tokens, and \"release\": true");
  if (auto error = fields.close()) return *error;
  const auto stream = text.stream.lock();
  const char* state = "ended";
  auto output = static_cast<std::int64_t>(text.output.size());
  if (stream && !stream->finished()) {
    if (release)
      stream->release();
    else
      stream->allow(static_cast<int>(*allow));
    state = stream->held() ? "held" : "running";
    output = text.begun + stream->drawn();
  }
  return to_json(json::object{{"state", state}, {"output", output}});
}

}  // namespace

extern const Endpoint kEndpoint_request_hold;
const Endpoint kEndpoint_request_hold{"POST", {"/api/requests/*/hold"}, reply_from_worker<hold>};

}  // namespace vitrine
