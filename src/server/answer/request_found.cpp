#include "server/answer/request_found.h"

#include "base/process_clock.h"
#include "server/request/json_fields.h"

namespace vitrine {

FoundRequests find_requests(const Api& api, std::string_view name, const HttpRequest& http) {
  const auto wanted = [&](const Account& a) {
    const bool number = http.rights.is_operator && a.id != 0 && std::to_string(a.id) == name;
    return (a.label == name || number) && visible(a, http);
  };
  const Snapshot now = api.engine->snapshot();
  const std::vector<Account> accounts = api.engine->accounts();
  FoundRequests out{{}, Names(accounts, now, http)};
  const auto add = [&](const Account& a, const SequenceStats* live) {
    if (!wanted(a)) return;
    FoundRequest& found = out.list.emplace_back();
    found.account = a;
    found.account.take_written();
    if (live != nullptr) found.live = *live;
    found.life = life_of(found.account, process_ns());
  };
  for (const Account& a : api.refused.all()) add(a, nullptr);
  for (const Account& a : accounts) add(a, nullptr);
  for (const auto* list : {&now.running, &now.waiting})
    for (const SequenceStats& s : *list) add(s.account, &s);
  return out;
}

ApiError no_such_request(std::string_view name) {
  return {404, "invalid_request_error",
          fmt::format("found no request {} among those that run and the last {} that ended",
                      describe(json::value(name)), kKeptAccounts),
          "id", "not_found"};
}

}  // namespace vitrine
