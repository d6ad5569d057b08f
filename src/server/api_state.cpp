// What the server is and does: /api/info, /api/requests, /api/snapshot.
#include "formats/storage.h"
#include "server/account_json.h"
#include "server/api.h"
#include "server/json_fields.h"

namespace vitrine {
namespace {

json::object memory_json(const MemoryPlan& m) {
  json::array groups;
  for (const CacheGroup& g : m.groups)
    groups.push_back(json::object{{"layers", g.layers.size()},
                                  {"pages", g.pages},
                                  {"pages_per_sequence", g.pages_per_sequence},
                                  {"page_bytes", g.page_bytes}});
  return {{"file_bytes", m.file_bytes},
          {"packed_bytes", m.packed_bytes},
          {"activation_bytes", m.activation_bytes},
          {"kv_bytes", m.kv_bytes},
          {"kv_bytes_per_token", m.kv_bytes_per_token},
          {"total_bytes", m.total()},
          {"groups", std::move(groups)}};
}

json::object defaults_json(const SamplingParams& params) {
  json::object out;
  for (const Param* p : all_params()) out[p->name] = params.get(p->name);
  return out;
}

std::string info(const Api& api) {
  const Engine& engine = *api.engine;
  const EngineInfo& model = engine.info();
  const EngineOptions& options = engine.options();
  Snapshot now = engine.snapshot();
  json::object tokenizer, chat;
  if (api.tokenizer != nullptr)
    tokenizer = {{"kind", api.tokenizer->kind()}, {"vocab", api.tokenizer->vocab_size()}};
  if (api.chat != nullptr)
    chat = {{"template", api.chat->origin()},
            {"tool_calls", api.chat->tools() ? json::value(api.chat->tools()->name) : nullptr},
            {"reasoning", api.chat->reasoning().begin}};
  return to_json(json::object{
      {"version", api.version},
      {"started_unix", api.started_unix},
      {"uptime_s", now.uptime_s},
      {"model",
       {{"name", api.model_name},
        {"arch", model.arch},
        {"layers", model.layers},
        {"dim", model.dim},
        {"heads", model.heads},
        {"vocab", model.vocab},
        {"context", model.model_context}}},
      {"tokenizer", api.tokenizer != nullptr ? json::value(tokenizer) : json::value()},
      {"chat", api.chat != nullptr ? json::value(chat) : json::value()},
      {"backend",
       {{"name", engine.info().backend}, {"description", engine.info().backend_description}}},
      {"limits",
       {{"context", api.context},
        {"sequences", now.max_sequences},
        {"step_tokens", now.step_tokens},
        {"queue", now.max_queue},
        {"choices", kMaxChoices},
        {"top_logprobs", kMaxTopLogprobs},
        {"stream_backlog", api.stream_backlog}}},
      {"options",
       {{"policy", now.policy},
        {"page_size", options.page_size},
        {"kv_type", dtype_name(options.kv_dtype)},
        {"isolate_keys", api.isolate_keys}}},
      {"embeddings", {{"dimensions", engine.info().dim}, {"pooling", pooling_name(api.pooling)}}},
      {"sampling_defaults", defaults_json(api.defaults)},
      {"memory", memory_json(engine.memory())}});
}

json::object ended_json(const Account& account) {
  json::object out = account_json(account);
  out["state"] = "ended";
  out["finish_reason"] = finish_reason_name(account.reason);
  return out;
}

// Live ones first, then the last that ended, newest first.
std::string requests(const Api& api, const std::string& tenant) {
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

// Every sequence with that id or label, with the records of its steps that are still kept. Empty:
// there is none.
std::string request_by_name(const Api& api, const std::string& name, const std::string& tenant) {
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
  return found.empty() ? "" : to_json(json::object{{"requests", std::move(found)}});
}

std::string snapshot(const Api& api, const std::string& tenant) {
  Snapshot s = api.engine->snapshot();
  json::array pools, running, waiting;
  for (const PoolStats& pool : s.pools) pools.push_back(pool_json(pool));
  for (const SequenceStats& q : s.running)
    if (api.visible(q.account, tenant)) running.push_back(sequence_json(q));
  for (const SequenceStats& q : s.waiting)
    if (api.visible(q.account, tenant)) waiting.push_back(sequence_json(q));
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

asio::awaitable<void> handle_info(Api& api, Exchange& exchange) {
  auto job = [&] { return info(api); };
  std::string body = co_await exchange.on_worker(job);
  co_await reply_json(exchange, std::move(body));
}

asio::awaitable<void> handle_requests(Api& api, Exchange& exchange) {
  auto job = [&] { return requests(api, exchange.request().tenant); };
  std::string body = co_await exchange.on_worker(job);
  co_await reply_json(exchange, std::move(body));
}

asio::awaitable<void> handle_request(Api& api, Exchange& exchange) {
  std::string name(exchange.request().argument);
  auto job = [&] { return request_by_name(api, name, exchange.request().tenant); };
  std::string body = co_await exchange.on_worker(job);
  if (!body.empty()) {
    co_await reply_json(exchange, std::move(body));
    co_return;
  }
  HttpError error{404, "invalid_request_error",
                  fmt::format("found no request {} among those that run and the last {} that ended",
                              describe(json::value(name)), kKeptAccounts),
                  "id", "not_found"};
  co_await reply_error(exchange, error);
}

asio::awaitable<void> handle_snapshot(Api& api, Exchange& exchange) {
  auto job = [&] { return snapshot(api, exchange.request().tenant); };
  std::string body = co_await exchange.on_worker(job);
  co_await reply_json(exchange, std::move(body));
}

}  // namespace vitrine
