// GET /api/snapshot: what runs and what waits now; only an operator sees all of it. full=1: with every page and
// block table, and the number of the last event before it.
#include "engine/engine.h"
#include "server/answer/moment_json.h"
#include "server/api.h"
#include "server/request/query.h"

namespace vitrine {
namespace {

Reply snapshot(const Api& api, const HttpRequest& http) {
  std::uint64_t full = 0;
  if (auto error = read_query(http.query, {whole_number("full", full, 0, 1)})) return *error;
  if (full == 1 && http.rights.is_operator)
    return to_json(moment_json(*api.engine, api.engine->moment(), http));
  return to_json(snapshot_json(api.engine->snapshot(), http));
}

}  // namespace

extern const Endpoint kEndpoint_snapshot;
const Endpoint kEndpoint_snapshot{"GET", {"/api/snapshot"}, reply_from_worker<snapshot>};

}  // namespace vitrine
