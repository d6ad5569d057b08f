// GET /api/requests: accounts of requests that run, wait or have ended, and one of them by name.
#include "engine/engine.h"
#include "server/answer/account_json.h"
#include "server/api.h"
#include "server/request/json_fields.h"

namespace vitrine {
namespace {

constexpr const char* kPath = "/api/requests";

json::object ended_json(const Account& account) {
  json::object out = account_json(account);
  out["state"] = "ended";
  out["finish_reason"] = finish_reason_name(account.reason);
  return out;
}

// Live ones first, then the last that ended, newest first.
std::string all_requests(const Api& api, const std::string& tenant) {
  Snapshot now = api.engine->snapshot();
  json::array live, ended;
  for (const auto* list : {&now.running, &now.waiting})
    for (const SequenceStats& s : *list)
      if (api.visible(s.account, tenant)) live.push_back(sequence_json(s));
  std::vector<Account> accounts = api.engine->accounts();
  for (auto account = accounts.rbegin(); account != accounts.rend(); ++account)
    if (api.visible(*account, tenant)) ended.push_back(ended_json(*account));
  return to_json(json::object{{"live", std::move(live)}, {"ended", std::move(ended)}});
}

void add_steps(const std::vector<StepRecord>& records, json::object& request, std::uint64_t id) {
  json::array steps;
  for (const StepRecord& record : records)
    for (const StepEntry& entry : record.entries)
      if (entry.sequence == id) {
        steps.push_back(step_json(record, id));
        break;
      }
  request["records"] = std::move(steps);
}

// Every sequence with that id or label, with the records of its steps that are still kept.
Reply request_by_name(const Api& api, const std::string& name, const std::string& tenant) {
  auto wanted = [&](const Account& a) {
    return (a.label == name || std::to_string(a.id) == name) && api.visible(a, tenant);
  };
  Snapshot now = api.engine->snapshot();
  std::vector<StepRecord> records = api.engine->records();
  json::array found;
  auto add = [&](json::object one, std::uint64_t sequence) {
    add_steps(records, one, sequence);
    found.push_back(std::move(one));
  };
  for (const Account& a : api.engine->accounts())
    if (wanted(a)) add(ended_json(a), a.id);
  for (const auto* list : {&now.running, &now.waiting})
    for (const SequenceStats& s : *list)
      if (wanted(s.account)) add(sequence_json(s), s.account.id);
  if (!found.empty()) return to_json(json::object{{"requests", std::move(found)}});
  return ApiError{404, "invalid_request_error",
                  fmt::format("found no request {} among those that run and the last {} that ended",
                              describe(json::value(name)), kKeptAccounts),
                  "id", "not_found"};
}

Reply requests(const Api& api, const HttpRequest& http) {
  if (http.path == kPath) return all_requests(api, http.tenant);
  return request_by_name(api, std::string(http.argument), http.tenant);
}

}  // namespace

extern const Endpoint kEndpoint_requests;
const Endpoint kEndpoint_requests{"GET", {kPath, "/api/requests/*"}, reply_from_worker<requests>};

}  // namespace vitrine
