// POST /v1/completions
#include "base/process_clock.h"
#include "server/answer/generation.h"
#include "server/answer/logprobs_json.h"
#include "server/request/constraint_fields.h"
#include "server/request/limits.h"
#include "server/request/prompt_fields.h"

namespace vitrine {
namespace {

constexpr int kDefaultTokens = 16;  // as OpenAI has it

void compile_constraint(const Api& api, JsonFields& fields,
                        const std::optional<ConstraintSpec>& spec, Request& r) {
  if (!spec || fields.error()) return;
  auto made = api.constraints.compile(api.tokenizer, *spec, api.scope(r.tenant));
  r.stamps.compiled = process_ns();
  if (made.ok())
    r.constraint = std::move(*made);
  else
    fields.fail(bad_field(spec->name, made.error().message));
}

// Legacy of OpenAI's: so many are drawn, and the n best shown.
void read_best_of(JsonFields& fields, Call& call) {
  Request& r = call.request;
  const auto best_of = fields.integer("best_of", 1, kMaxChoices);
  if (!best_of || *best_of == r.choices) return;
  if (*best_of < r.choices)
    return fields.fail(
        "best_of", fmt::format("found {}, allowed at least n, which is {}", *best_of, r.choices));
  // vLLM's name for how many texts are searched.
  if (r.beams) {
    r.beams->beams = std::max(r.beams->beams, static_cast<int>(*best_of));
    return;
  }
  if (call.stream)
    return fields.fail("best_of",
                       "allowed above n only without \"stream\": true: which are best is "
                       "known at the end");
  call.shown = r.choices;
  r.choices = static_cast<int>(*best_of);
}

void read(const Api& api, const HttpRequest& http, JsonFields& fields, Call& call) {
  Request& r = call.request;
  read_common(api, http, fields, call);
  r.max_tokens =
      static_cast<int>(fields.clamped("max_tokens", 0, api.context).value_or(kDefaultTokens));
  bool echo = fields.boolean("echo").value_or(false);
  r.logprobs = fields.any("logprobs") != nullptr;
  read_top_logprobs(fields, "logprobs", r);
  r.prompt_logprobs = echo && r.logprobs;
  fields.refuse({"suffix"});
  fields.ignore({"parallel_tool_calls"});
  read_best_of(fields, call);
  const auto constraint = read_constraint(fields);
  read_stops(api, fields, {}, call);
  r.stamps.parsed = process_ns();
  compile_constraint(api, fields, constraint, r);
  PromptField field{.name = "prompt", .plural = "prompts", .most = kMaxAnswers / r.choices};
  field.why_most = fmt::format(" of {} choices each", r.choices);
  field.keep_text = echo;
  Prompts prompts = read_prompts(api, fields, field);
  r.stamps.tokenized = process_ns();
  call.prompts = std::move(prompts.ids), call.echoes = std::move(prompts.texts);
  check_lengths(api, fields, "prompt", call);
}

std::string choice(const Call& call, const Tokenizer* tokenizer, const Part& part, bool) {
  std::string out = fmt::format("{{\"index\":{},\"text\":", part.index);
  append_json(out, part.text);
  if (tokenizer == nullptr) {  // the ids are all there is
    json::array ids;
    for (const TokenEvent& event : part.tokens) ids.emplace_back(event.token);
    out += ",\"token_ids\":" + to_json(ids);
  }
  out += ",\"logprobs\":";
  out += call.request.logprobs ? completion_logprobs(call, tokenizer, part) : "null";
  return out + finish_reason_json(part) + "}";
}

}  // namespace

extern const TextEndpoint kCompletions;
const TextEndpoint kCompletions{read, choice, "cmpl-", "text_completion", "text_completion"};

extern const Endpoint kEndpoint_completions;
const Endpoint kEndpoint_completions{"POST", {"/v1/completions"}, generate<kCompletions>};

}  // namespace vitrine
