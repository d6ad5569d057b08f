// DELETE /api/requests/ID: forgets what a recorded request said and was told, all its choices.
#include "base/json.h"
#include "server/api.h"
#include "server/request/kept_text.h"

namespace vitrine {
namespace {

Reply forget(Api& api, const HttpRequest& http) {
  const std::size_t n = api.texts.forget(http.argument, http).size();
  if (n == 0) return not_kept(api, http.argument);
  return to_json(json::object{{"forgotten", n}});
}

asio::awaitable<void> handle(Api& api, Exchange& exchange) {
  return send_reply(exchange, forget(api, exchange.request()));
}

}  // namespace

extern const Endpoint kEndpoint_request_forget;
const Endpoint kEndpoint_request_forget{"DELETE", {"/api/requests/*"}, handle};

}  // namespace vitrine
