// GET /api/requests: accounts of requests that run, wait or have ended, and one of them by name.
// Only an operator sees those of other keys, and numbers that tell about them.
#include "engine/engine.h"
#include "server/answer/account_json.h"
#include "server/api.h"
#include "server/request/json_fields.h"

namespace vitrine {
namespace {

constexpr const char* kPath = "/api/requests";

json::object ended_json(const Account& account, bool all) {
  json::object out = account_json(account, all);
  out["state"] = "ended";
  out["finish_reason"] = finish_reason_name(account.reason);
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
  for (auto account = accounts.rbegin(); account != accounts.rend(); ++account)
    if (visible(*account, http)) ended.push_back(ended_json(*account, all));
  return to_json(json::object{{"live", std::move(live)}, {"ended", std::move(ended)}});
}

// Every sequence with that id or label, with the records of its steps that are still kept. Ids are
// an operator's: they count everybody's requests.
Reply request_by_name(const Api& api, const std::string& name, const HttpRequest& http) {
  const bool all = http.rights.is_operator;
  auto wanted = [&](const Account& a) {
    return (a.label == name || (all && std::to_string(a.id) == name)) && visible(a, http);
  };
  Snapshot now = api.engine->snapshot();
  json::array found;
  auto add = [&](json::object one, std::uint64_t sequence) {
    json::array steps;
    for (const StepRecord& record : api.engine->steps_of(sequence))
      steps.push_back(step_json(record, sequence, all));
    one["records"] = std::move(steps);
    one["recorded"] = api.texts.has(sequence);
    found.push_back(std::move(one));
  };
  for (const Account& a : api.engine->accounts())
    if (wanted(a)) add(ended_json(a, all), a.id);
  for (const auto* list : {&now.running, &now.waiting})
    for (const SequenceStats& s : *list)
      if (wanted(s.account)) add(sequence_json(s, all), s.account.id);
  if (!found.empty()) return to_json(json::object{{"requests", std::move(found)}});
  return ApiError{404, "invalid_request_error",
                  fmt::format("found no request {} among those that run and the last {} that ended",
                              describe(json::value(name)), kKeptAccounts),
                  "id", "not_found"};
}

Reply requests(const Api& api, const HttpRequest& http) {
  if (http.path == kPath) return all_requests(api, http);
  return request_by_name(api, std::string(http.argument), http);
}

}  // namespace

extern const Endpoint kEndpoint_requests;
const Endpoint kEndpoint_requests{"GET", {kPath, "/api/requests/*"}, reply_from_worker<requests>};

}  // namespace vitrine
