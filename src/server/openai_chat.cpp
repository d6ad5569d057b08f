// POST /v1/chat/completions
#include "server/generation.h"
#include "server/logprobs_json.h"

namespace vitrine {
namespace {

// A stream has a call in parts: id and name, then more and more of the arguments.
std::string calls(const Part& part, bool delta) {
  std::string out = "\"tool_calls\":[";
  for (std::size_t i = 0; i < part.calls.size(); ++i) {
    const Part::CallPart& call = part.calls[i];
    out += i > 0 ? ",{" : "{";
    if (delta) out += fmt::format("\"index\":{},", call.index);
    if (!call.id.empty()) {
      out += "\"id\":";
      append_json(out, call.id);
      out += ",\"type\":\"function\",\"function\":{\"name\":";
      append_json(out, call.name);
      out += ",\"arguments\":";
    } else {
      out += "\"function\":{\"arguments\":";
    }
    append_json(out, call.arguments);
    out += "}}";
  }
  return out + "],";
}

// {"role":..,"content":..} or, in a stream, what is new of it.
std::string message(const Part& part, bool delta) {
  std::string out = "{";
  bool empty = part.text.empty();
  if (!delta || part.first) out += "\"role\":\"assistant\",";
  if (!delta && empty && !part.calls.empty()) {
    out += "\"content\":null,";
  } else if (!delta || part.first || !empty) {
    out += "\"content\":";
    append_json(out, part.text);
    out += ",";
  }
  if (!part.reasoning.empty()) {
    out += "\"reasoning_content\":";
    append_json(out, part.reasoning);
    out += ",";
  }
  if (!part.calls.empty()) out += calls(part, delta);
  if (!delta) out += "\"refusal\":null,";
  if (out.size() > 1) out.pop_back();
  return out + "}";
}

std::string choice(const Call& call, const Tokenizer* tokenizer, const Part& part, bool delta) {
  std::string out = fmt::format("{{\"index\":{},\"{}\":{},\"logprobs\":", part.index,
                                delta ? "delta" : "message", message(part, delta));
  out += call.request.logprobs ? to_json(chat_logprobs(call, tokenizer, part)) : "null";
  out += ",\"finish_reason\":";
  if (part.finish_reason != nullptr)
    append_json(out, part.finish_reason);
  else
    out += "null";
  return out + "}";
}

constexpr Endpoint kChat{"chatcmpl-", "chat.completion", "chat.completion.chunk", choice};

}  // namespace

asio::awaitable<void> handle_chat(Api& api, Exchange& exchange) {
  auto parse = [&] { return read_chat(api, exchange.request()); };
  ParsedCall parsed = co_await exchange.on_worker(parse);
  if (parsed.error)
    co_await reply_error(exchange, *parsed.error);
  else
    co_await answer_call(api, exchange, kChat, std::move(parsed.call));
}

}  // namespace vitrine
