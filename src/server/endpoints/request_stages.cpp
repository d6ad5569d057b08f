// POST /api/requests/ID/stages: how a token of a recorded request was drawn, stage by stage, or would
// be with other parameters.
#include <set>

#include "engine/engine.h"
#include "sampling/explain.h"
#include "sampling/race.h"
#include "server/answer/text_json.h"
#include "server/replay.h"
#include "server/request/call.h"
#include "server/request/kept_text.h"

namespace vitrine {
namespace {

constexpr int kMostTop = 64, kMostDraws = 10000;

struct Stages {
  Text text;
  SamplingParams sampling;
  int position = 0, top = kMostTop, draws = 0;
};

std::optional<ApiError> read(const Api& api, const HttpRequest& http, Stages& out) {
  if (auto error = find_text(api, http, out.text)) return error;
  json::value body;
  if (auto error = parse_body(http.body, body)) return error;
  JsonFields fields(body.get_object());
  const auto first = static_cast<int>(out.text.prompt->size());
  const auto position = fields.integer("position", first, out.text.length());
  if (!position)
    fields.fail("position", fmt::format("found nothing, allowed {} to {}: the tokens of the answer",
                                        first, out.text.length()));
  out.position = static_cast<int>(position.value_or(first));
  out.sampling = read_overrides(api, fields, out.text.call->request.sampling);
  out.top = static_cast<int>(fields.integer("top", 1, kMostTop).value_or(kMostTop));
  out.draws = static_cast<int>(fields.integer("draws", 0, kMostDraws).value_or(0));
  return fields.close();
}

json::object stage_json(const StageView& stage, const Tokenizer* tokenizer) {
  json::object params;
  for (const auto& [name, value] : stage.params) params[name] = value;
  json::array top;
  for (const Candidate& c : stage.top)
    top.push_back(json::array{c.id, token_text(tokenizer, c.id), c.logit, stage.p(c.weight)});
  return {{"name", stage.name},
          {"params", std::move(params)},
          {"kept", stage.kept},
          {"mass", stage.mass},
          {"entropy", stage.entropy},
          {"top", std::move(top)},
          {"rest", {{"n", stage.rest}, {"p", stage.p(stage.rest_weight)}}}};
}

// The draw: every candidate of the last stage has a noise E, and the least E / p wins. The winner and the
// likeliest ones, in the order of arriving; empty where there was no choice.
json::array race_json(const Explanation& told, const DrawKey& key, const Tokenizer* tokenizer) {
  json::array out;
  if (told.last.size() < 2) return out;
  const StageView& last = told.stages.back();
  std::set<std::int32_t> shown{told.token};
  for (const Candidate& c : last.top)
    if (c.weight > 0) shown.insert(c.id);
  for (const Run& run : tell_race(told.last, key)) {
    if (!shown.contains(run.id)) continue;
    const double p = last.p(run.weight);
    out.push_back(json::object{{"id", run.id},
                               {"text", token_text(tokenizer, run.id)},
                               {"weight", run.weight},
                               {"p", p},
                               {"noise", run.noise},
                               {"time", run.noise / p}});
  }
  return out;
}

Reply answer(const Api& api, const Stages& call, const Replay& replay) {
  const Text& text = call.text;
  auto state = draw_state_at(api, text, call.sampling, call.position);
  if (!state)
    return ApiError{500, "server_error", "its tokens do not follow its constraint", "", ""};
  const DrawState::Next next = state->next(call.position - 1);
  const std::optional<std::int32_t> was = text.told(call.position);
  json::object out{
      {"position", call.position},
      {"exact", replays_are_exact(api)},
      {"vocab", api.vocab},
      {"seed", state->seed},
      {"choice", state->choice},
      {"computed_rows", replay.computed_rows()},
      {"was", was ? json::value(*was) : json::value()},
      {"was_text", was ? json::value(token_text(api.tokenizer, *was)) : json::value()}};
  if (next.complete || next.status != LogitsStatus::kOk) {
    out["stages"] = json::array();
    out["drawn"] = nullptr;
    out["same_token"] = !was;
    out["ends"] = next.complete ? "the constraint is complete: nothing may follow"
                                : logits_status_text(next.status);
    return to_json(out);
  }
  const std::vector<float>& logits = *replay.row(call.position);
  Scratch scratch(logits.size());
  const Explanation told = state->chain->explain(logits, state->history, next.spec,
                                                 static_cast<std::size_t>(call.top), scratch);
  if (told.status != LogitsStatus::kOk)
    return ApiError{500, "server_error", logits_status_text(told.status), "", "replay_failed"};
  json::array stages;
  for (const StageView& stage : told.stages) stages.push_back(stage_json(stage, api.tokenizer));
  out["stages"] = std::move(stages);
  out["same_token"] = was && *was == told.token;
  const StageView& last = told.stages.back();
  out["drawn"] = json::object{{"id", told.token},
                              {"text", token_text(api.tokenizer, told.token)},
                              {"p", last.p(told.weight(told.token))},
                              {"ends", state->ends_with(told.token)}};
  const DrawKey key = next.spec.key();
  auto race = race_json(told, key, api.tokenizer);
  if (!race.empty()) out["race"] = std::move(race);
  if (call.draws > 0) {
    json::object counts;
    for (const auto& [id, n] : draw_often(told, call.draws, key)) counts[std::to_string(id)] = n;
    out["draws"] = std::move(counts);
  }
  return to_json(out);
}

asio::awaitable<void> handle(Api& api, Exchange& exchange) {
  Stages call;
  auto first = [&] { return read(api, exchange.request(), call); };
  std::optional<ApiError> error = co_await exchange.on_worker(first);
  if (error) {
    Reply reply(*error);
    co_await send_reply(exchange, std::move(reply));
    co_return;
  }
  Replay replay(api, exchange);
  std::vector<int> positions{call.position};
  bool there = co_await replay.fetch(call.text, std::move(positions));
  if (!there && !replay.refused()) co_return;
  auto last = [&] { return there ? answer(api, call, replay) : std::move(*replay.refused()); };
  Reply reply = co_await exchange.on_worker(last);
  co_await send_reply(exchange, std::move(reply));
}

}  // namespace

extern const Endpoint kEndpoint_request_stages;
const Endpoint kEndpoint_request_stages{"POST", {"/api/requests/*/stages"}, handle};

}  // namespace vitrine
