// GET /api/snapshot: what runs and what waits now.
#include "engine/engine.h"
#include "server/answer/account_json.h"
#include "server/api.h"

namespace vitrine {
namespace {

Reply snapshot(const Api& api, const HttpRequest& http) {
  Snapshot s = api.engine->snapshot();
  json::array pools, running, waiting;
  for (const PoolStats& pool : s.pools) pools.push_back(pool_json(pool));
  for (const SequenceStats& q : s.running)
    if (api.visible(q.account, http.tenant)) running.push_back(sequence_json(q));
  for (const SequenceStats& q : s.waiting)
    if (api.visible(q.account, http.tenant)) waiting.push_back(sequence_json(q));
  return to_json(json::object{{"step", s.step},
                              {"uptime_s", s.uptime_s},
                              {"policy", s.policy},
                              {"max_sequences", s.max_sequences},
                              {"step_tokens", s.step_tokens},
                              {"max_queue", s.max_queue},
                              {"context", s.context},
                              {"num_running", s.running.size()},
                              {"num_waiting", s.waiting.size()},
                              {"pools", std::move(pools)},
                              {"running", std::move(running)},
                              {"waiting", std::move(waiting)}});
}

}  // namespace

extern const Endpoint kEndpoint_snapshot;
const Endpoint kEndpoint_snapshot{"GET", {"/api/snapshot"}, reply_from_worker<snapshot>};

}  // namespace vitrine
