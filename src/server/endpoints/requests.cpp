// GET /api/requests: accounts of requests that run, wait or have ended, and one of them by name.
// Only an operator sees those of other keys, and numbers that tell about them.
#include "engine/engine.h"
#include "server/answer/account_json.h"
#include "server/answer/request_found.h"
#include "server/api.h"

namespace vitrine {
namespace {

constexpr const char* kPath = "/api/requests";

json::object ended_json(const Account& account, bool all) {
  json::object out = account_json(account, all);
  const bool refused = account.stamps.submitted == 0;
  out["state"] = refused ? "refused" : "ended";
  if (!refused) out["finish_reason"] = finish_reason_name(account.reason);
  out["written"] = !account.written || account.written->done;
  return out;
}

// Live ones first, then the last that ended, newest first.
std::string all_requests(const Api& api, const HttpRequest& http) {
  const bool all = http.rights.is_operator;
  Snapshot now = api.engine->snapshot();
  json::array live, ended;
  for (const auto* list : {&now.running, &now.waiting})
    for (const SequenceStats& s : *list)
      if (visible(s.account, http)) live.push_back(sequence_json(s, all));
  std::vector<Account> accounts = api.engine->accounts();
  for (Account& a : accounts) a.take_written();
  for (auto account = accounts.rbegin(); account != accounts.rend(); ++account)
    if (visible(*account, http)) ended.push_back(ended_json(*account, all));
  return to_json(json::object{{"live", std::move(live)}, {"ended", std::move(ended)}});
}

// With its life and the records of its steps that are still kept.
Reply request_by_name(const Api& api, std::string_view name, const HttpRequest& http) {
  const bool all = http.rights.is_operator;
  const FoundRequests found = find_requests(api, name, http);
  if (found.list.empty()) return no_such_request(name);
  json::array out;
  for (const FoundRequest& each : found.list) {
    const Account& a = each.account;
    json::object one = ended_json(a, all);
    if (each.live) {
      one = sequence_json(*each.live, all);
      one["stamps"] = stamps_json(a.stamps), one["bytes_out"] = a.bytes_out;
    }
    json::array steps, sentences;
    for (const StepRecord& record : api.engine->steps_of(a.id))
      steps.push_back(step_json(record, a.id, all));
    const std::vector<StepRecord> queue = steps_of_queue(*api.engine, a);
    for (std::string& sentence : why(a, each.life, queue, found.names))
      sentences.emplace_back(std::move(sentence));
    one["life"] = life_json(each.life, queue, found.names);
    one["why"] = std::move(sentences);
    one["records"] = std::move(steps);
    one["recorded"] = api.texts.has(a.id);
    out.push_back(std::move(one));
  }
  return to_json(json::object{{"requests", std::move(out)}});
}

Reply requests(const Api& api, const HttpRequest& http) {
  if (http.path == kPath) return all_requests(api, http);
  return request_by_name(api, http.argument, http);
}

}  // namespace

extern const Endpoint kEndpoint_requests;
const Endpoint kEndpoint_requests{"GET", {kPath, "/api/requests/*"}, reply_from_worker<requests>};

}  // namespace vitrine
