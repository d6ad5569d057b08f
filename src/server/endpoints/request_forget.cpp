// DELETE /api/requests/ID: forgets what a recorded request said and was told, all its choices.
#include "base/json.h"
#include "server/api.h"
#include "server/request/kept_text.h"

namespace vitrine {
namespace {

Reply forget(Api& api, const HttpRequest& http) {
  const std::vector<std::uint64_t> ids = api.texts.forget(http.argument, http);
  if (ids.empty()) return not_kept(api, http.argument);
  for (std::uint64_t id : ids) api.rows.forget(id);
  return to_json(json::object{{"forgotten", ids.size()}});
}

asio::awaitable<void> handle(Api& api, Exchange& exchange) {
  return send_reply(exchange, forget(api, exchange.request()));
}

}  // namespace

extern const Endpoint kEndpoint_request_forget;
const Endpoint kEndpoint_request_forget{"DELETE", {"/api/requests/*"}, handle};

}  // namespace vitrine
