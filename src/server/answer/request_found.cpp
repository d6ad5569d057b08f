#include "server/answer/request_found.h"

#include <algorithm>

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

std::size_t rows_of(const FoundRequests& found) {
  std::size_t out = 0;
  for (const FoundRequest& each : found.list)
    out += static_cast<std::size_t>(std::clamp(each.account.steps, 0, kKeptRecords));
  return out;
}

std::size_t bytes_of_steps(const FoundRequests& found) {
  const std::size_t rows = rows_of(found);
  return std::min<std::size_t>(rows, kKeptRecords) *
             (sizeof(OwnStep) + OwnStep::kMostLargest * sizeof(StepEntry)) +
         rows * (sizeof(StepEntry) + sizeof(FoundSteps::Row));
}

std::size_t bytes_of(const FoundRequests& found) {
  std::size_t out = 0;
  for (const FoundRequest& each : found.list)
    out += sizeof(FoundRequest) + each.life.size() * sizeof(LifePart);
  return out;
}

FoundSteps steps_of(const Engine& engine, const FoundRequests& found, std::size_t most) {
  std::vector<std::pair<std::uint64_t, std::size_t>> places;  // in the list, by number
  std::vector<std::uint64_t> ids;
  for (std::size_t i = 0; i < found.list.size(); ++i)
    if (const std::uint64_t id = found.list[i].account.id; id != 0) places.emplace_back(id, i);
  std::sort(places.begin(), places.end());
  for (const auto& [id, place] : places)
    if (ids.empty() || ids.back() != id) ids.push_back(id);
  FoundSteps out;
  out.steps = engine.steps_of(ids);
  out.of.resize(found.list.size());
  auto first = out.steps.cend();
  for (std::size_t rows = 0; first != out.steps.cbegin(); --first)
    if ((rows += std::prev(first)->record.entries.size()) > most) break;
  for (; first != out.steps.cend(); ++first)
    for (const StepEntry& e : first->record.entries)
      for (auto at = std::lower_bound(places.begin(), places.end(),
                                      std::pair(e.sequence, std::size_t{0}));
           at != places.end() && at->first == e.sequence; ++at)
        out.of[at->second].push_back({&*first, &e});
  return out;
}

}  // namespace vitrine
