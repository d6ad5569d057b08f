// GET /api/requests: accounts of requests that run, wait or have ended, and one of them by name.
// Only an operator sees those of other keys, and numbers that tell about them.
#include "engine/engine.h"
#include "server/answer/account_json.h"
#include "server/answer/pieces.h"
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

// A request while it is written.
struct Told {
  FoundRequests found;
  FoundSteps steps;
};

// All of a choice but its steps.
json::object choice_json(const Api& api, const FoundRequest& each, const Names& names) {
  const bool all = names.sees_all();
  const Account& a = each.account;
  json::object one;
  if (each.live) {
    one = sequence_json(*each.live, all);
    one["stamps"] = stamps_json(a.stamps), one["bytes_out"] = a.bytes_out;
  } else {
    one = ended_json(a, all);
  }
  json::array sentences;
  const std::vector<StepRecord> queue = steps_of_queue(*api.engine, a);
  for (std::string& sentence : why(a, each.life, queue, names))
    sentences.emplace_back(std::move(sentence));
  one["life"] = life_json(each.life, queue, names);
  one["why"] = std::move(sentences);
  one["recorded"] = api.texts.has(a.id);
  return one;
}

// With its life and the records of its steps that are still kept. Choices are written one after the other, so
// that at a time there are the steps of one queue only.
Reply request_by_name(const Api& api, Exchange& exchange) {
  const HttpRequest& http = exchange.request();
  auto told = std::make_shared<Told>(Told{find_requests(api, http.argument, http), FoundSteps()});
  const std::vector<FoundRequest>& list = told->found.list;
  if (list.empty()) return no_such_request(http.argument);
  const auto seats = static_cast<std::size_t>(api.engine->memory().sequences);
  const std::size_t held = bytes_of(told->found) + bytes_of_steps(told->found) +
                           (api.engine->log().on() ? kMostQueueSteps : 0) *
                               (sizeof(StepRecord) + seats * sizeof(StepEntry));
  if (!exchange.hold(static_cast<std::int64_t>(held))) return too_many_answers_reply();
  told->steps = steps_of(*api.engine, told->found);
  Pieces out;
  out.add("{\"requests\":[");
  for (std::size_t i = 0; i < list.size(); ++i) {
    out.add(1, [&api, told, i](std::string& to, std::size_t) {
      if (i > 0) to += ',';
      to += to_json(choice_json(api, told->found.list[i], told->found.names));
      to.back() = ',';
      to += "\"records\":";
    });
    out.list(told->steps.of[i].size(), [told, i](std::string& to, std::size_t k) {
      const FoundSteps::Row& row = told->steps.of[i][k];
      to += to_json(step_json(*row.step, *row.entry, told->found.names.sees_all()));
    });
    out.add("}");
  }
  out.add("]}");
  return reply_in_pieces(std::move(out), held);
}

Reply requests(const Api& api, Exchange& exchange) {
  if (exchange.request().path == kPath) return all_requests(api, exchange.request());
  return request_by_name(api, exchange);
}

}  // namespace

extern const Endpoint kEndpoint_requests;
const Endpoint kEndpoint_requests{"GET", {kPath, "/api/requests/*"}, reply_with_room<requests>};

}  // namespace vitrine
