#include "server/answer/moment_json.h"

#include <chrono>

#include "base/process_clock.h"
#include "server/answer/account_json.h"
#include "server/api.h"

namespace vitrine {
namespace {

constexpr int kSchema = 1;

std::int64_t unix_ns() {
  return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

json::object snapshot_json(const Snapshot& s, const HttpRequest& http) {
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
  return out;
}

json::object pages_json(const PageMap& map) {
  json::array groups, tables;
  for (const PageMap::Group& g : map.groups) {
    std::string named;
    for (const bool one : g.named) named += one ? '1' : '0';
    groups.push_back(json::object{{"window", g.window},
                                  {"page_size", g.page_size},
                                  {"pages", g.pages},
                                  {"holders", json::array(g.holders.begin(), g.holders.end())},
                                  {"fill", json::array(g.fill.begin(), g.fill.end())},
                                  {"named", std::move(named)}});
  }
  for (const PageMap::Table& t : map.tables)
    tables.push_back(json::object{{"id", t.sequence},
                                  {"slot", t.slot},
                                  {"group", t.group},
                                  {"length", t.length},
                                  {"pages", json::array(t.pages.begin(), t.pages.end())}});
  return {{"groups", std::move(groups)}, {"tables", std::move(tables)}};
}

json::object moment_json(const Engine& engine, const Engine::Moment& m, const HttpRequest& http) {
  json::object out = snapshot_json(m.snapshot, http);
  auto complete = [](json::value& listed, const std::vector<SequenceStats>& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      json::object& one = listed.get_array()[i].get_object();
      one["slot"] = list[i].slot;
      one["prefill_end"] = list[i].prefill_end;
    }
  };
  complete(out["running"], m.snapshot.running);
  complete(out["waiting"], m.snapshot.waiting);
  if (engine.log().on()) out["seq"] = m.seq;
  out["epoch"] = engine.epoch();
  out["now_ns"] = m.now_ns;
  out["pages"] = pages_json(m.pages);
  return out;
}

json::object hello_json(const Engine& engine, const std::string& model, const HttpRequest& http) {
  return {{"schema", kSchema},      {"epoch", engine.epoch()},
          {"now_ns", process_ns()}, {"now_unix_ns", unix_ns()},
          {"model", model},         {"viewer", {{"name", http.tenant}, {"role", "operator"}}}};
}

ApiError no_log() {
  return {404, "invalid_request_error",
          "found no log of events: the server keeps none (--trace-mib 0)", "", "not_found"};
}

ApiError too_many_streams() {
  return {
      429, "rate_limit_error",
      fmt::format("{} streams of events are open, as many as there can be", TraceHub::kMostStreams),
      "", "too_many_streams"};
}

}  // namespace vitrine
