// GET /api/snapshot: what runs and what waits now; only an operator sees all of it.
#include "engine/engine.h"
#include "server/answer/account_json.h"
#include "server/api.h"

namespace vitrine {
namespace {

Reply snapshot(const Api& api, const HttpRequest& http) {
  Snapshot s = api.engine->snapshot();
  const bool all = http.rights.is_operator;
  auto listed = [&](const std::vector<SequenceStats>& list) {
    json::array out;
    for (const SequenceStats& q : list)
      if (visible(q.account, http)) out.push_back(sequence_json(q, all));
    return out;
  };
  json::array running = listed(s.running), waiting = listed(s.waiting);
  json::object out{{"uptime_s", s.uptime_s},           {"policy", s.policy},
                   {"max_sequences", s.max_sequences}, {"step_tokens", s.step_tokens},
                   {"max_queue", s.max_queue},         {"context", s.context},
                   {"num_running", running.size()},    {"num_waiting", waiting.size()},
                   {"running", std::move(running)},    {"waiting", std::move(waiting)}};
  if (all) {
    json::array pools;
    for (const PoolStats& pool : s.pools) pools.push_back(pool_json(pool));
    out["step"] = s.step;
    out["blocked"] = blocked_json(s.blocked);
    out["pools"] = std::move(pools);
  }
  return to_json(out);
}

}  // namespace

extern const Endpoint kEndpoint_snapshot;
const Endpoint kEndpoint_snapshot{"GET", {"/api/snapshot"}, reply_from_worker<snapshot>};

}  // namespace vitrine
