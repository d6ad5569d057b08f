// POST /v1/completions
#include "server/generation.h"
#include "server/logprobs_json.h"

namespace vitrine {
namespace {

std::string choice(const Call& call, const Tokenizer* tokenizer, const Part& part, bool) {
  std::string out = fmt::format("{{\"index\":{},\"text\":", part.index);
  append_json(out, part.text);
  if (tokenizer == nullptr) {  // the ids are all there is
    json::array ids;
    for (const TokenEvent& event : part.tokens) ids.emplace_back(event.token);
    out += ",\"token_ids\":" + to_json(ids);
  }
  out += ",\"logprobs\":";
  out += call.request.logprobs ? to_json(completion_logprobs(call, tokenizer, part)) : "null";
  out += ",\"finish_reason\":";
  if (part.finish_reason != nullptr)
    append_json(out, part.finish_reason);
  else
    out += "null";
  return out + "}";
}

constexpr Endpoint kCompletions{"cmpl-", "text_completion", "text_completion", choice};

}  // namespace

asio::awaitable<void> handle_completions(Api& api, Exchange& exchange) {
  auto parse = [&] { return read_completion(api, exchange.request()); };
  ParsedCall parsed = co_await exchange.on_worker(parse);
  if (parsed.error)
    co_await reply_error(exchange, *parsed.error);
  else
    co_await answer_call(api, exchange, kCompletions, std::move(parsed.call));
}

}  // namespace vitrine
