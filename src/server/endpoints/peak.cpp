// POST /api/peak: what the machine can do at most, measured while nothing runs. For operators, because others
// wait meanwhile.
#include "engine/engine.h"
#include "server/answer/peak_json.h"
#include "server/api.h"
#include "server/request/json_fields.h"

namespace vitrine {
namespace {

Reply peak(const Api& api, const HttpRequest& http) {
  if (!http.rights.is_operator) return operator_only(http.path);
  json::value body;
  if (auto error = parse_body(http.body, body)) return *error;
  JsonFields fields(body.get_object());
  const bool again = fields.boolean("again").value_or(false);
  if (auto error = fields.close()) return *error;
  if (api.draining) return shutting_down();
  if (again || !api.engine->peak()) {
    const auto measured = api.engine->measure_peak();
    if (!measured.ok() && measured.error().code == ErrorCode::kBusy)
      return ApiError{409, "invalid_request_error", measured.error().message, "", "busy"};
    if (!measured.ok())
      return ApiError{503, "server_error", measured.error().message, "", "unavailable"};
  }
  return to_json(peak_json(*api.engine->peak()));
}

}  // namespace

extern const Endpoint kEndpoint_peak;
const Endpoint kEndpoint_peak{"POST", {"/api/peak"}, reply_from_worker<peak>};

}  // namespace vitrine
