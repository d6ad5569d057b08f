// POST /api/requests/ID/fork: goes on from a token of a recorded answer, as it was or otherwise.
#include <algorithm>

#include "base/process_clock.h"
#include "server/answer/generation.h"
#include "server/request/call.h"
#include "server/request/kept_text.h"
#include "server/request/limits.h"
#include "server/request/prompt_fields.h"

namespace vitrine {
namespace {

// Where the fork begins: the tokens before `position`, and the one that takes its place.
void read_begin(const Api& api, JsonFields& fields, const Text& text, Call& call) {
  const auto first = static_cast<int>(text.prompt->size());
  const auto position = fields.integer("position", first, text.length());
  if (!position)
    fields.fail("position", fmt::format("found nothing, allowed {} to {}: the tokens of the answer",
                                        first, text.length()));
  const auto token = fields.integer("token", 0, api.vocab - 1);
  if (fields.error()) return;
  const auto n = static_cast<std::ptrdiff_t>(*position - first);
  Request& r = call.request;
  r.begun.assign(text.output.begin(), text.output.begin() + n);
  r.begun_p.assign(text.p.begin(),
                   text.p.begin() + std::min(n, static_cast<std::ptrdiff_t>(text.p.size())));
  call.begun_kinds.assign(text.kinds.begin(), text.kinds.begin() + n);
  if (!token) return;
  r.begun.push_back(static_cast<std::int32_t>(*token));
  call.begun_kinds.push_back(SaidKind::kOutput);
}

// As many tokens as its parent had left, at least one.
void read_length(const Api& api, JsonFields& fields, Call& call) {
  Request& r = call.request;
  const auto begun = static_cast<int>(r.begun.size());
  if (auto more = fields.clamped("max_tokens", 1, api.context))
    r.max_tokens = begun + static_cast<int>(*more);
  else if (r.max_tokens)
    r.max_tokens = std::max(*r.max_tokens, begun + 1);
}

void read_fields(const Api& api, const HttpRequest& http, JsonFields& fields, const Text& text,
                 Call& call) {
  Request& r = call.request;
  read_begin(api, fields, text, call);
  r.sampling = read_overrides(api, fields, r.sampling);
  if (!r.sampling.seed()) r.sampling.set_seed(text.seed);
  if (auto seed = fields.bits("seed")) r.sampling.set_seed(*seed);
  r.choices = static_cast<int>(fields.integer("n", 1, kMaxChoices).value_or(1));
  r.first_choice = text.choice;
  read_length(api, fields, call);
  r.logprobs = fields.boolean("logprobs").value_or(r.logprobs);
  if (fields.any("top_logprobs") != nullptr) read_top_logprobs(fields, "top_logprobs", r);
  if (!r.logprobs) r.top_logprobs = 0;
  r.prompt_logprobs = false;
  read_origin(http, r);
  r.timeout = api.default_timeout;
  r.parent = text.id;
  read_stream(fields, call, true);
  r.max_backlog = call.stream ? api.stream_backlog : 0;
  read_vitrine(api, fields, call, true);
}

ParsedCall read(const Api& api, const HttpRequest& http, const TextEndpoint*& endpoint) {
  ParsedCall out;
  Text text;
  out.error = find_text(api, http, text);
  if (out.error) return out;
  json::value body;
  out.error = parse_body(http.body, body);
  if (out.error) return out;
  JsonFields fields(body.get_object());
  endpoint = text.endpoint;
  out.call = *text.call;
  out.call.parent = text.label;
  read_fields(api, http, fields, text, out.call);
  out.call.prompts.push_back(*text.prompt);
  out.error = fields.close();
  out.call.request.stamps.parsed = process_ns();
  return out;
}

asio::awaitable<void> handle(Api& api, Exchange& exchange) {
  return generate_call(api, exchange, read);
}

}  // namespace

extern const Endpoint kEndpoint_request_fork;
const Endpoint kEndpoint_request_fork{"POST", {"/api/requests/*/fork"}, handle};

}  // namespace vitrine
