// POST /v1/chat/completions
#include "server/answer/generation.h"
#include "server/answer/logprobs_json.h"
#include "server/request/chat_request.h"
#include "server/request/constraint_fields.h"
#include "server/request/limits.h"

namespace vitrine {
namespace {

// OpenAI's fields for what a text model cannot do.
void refuse_chat_fields(JsonFields& fields) {
  fields.refuse({"functions", "function_call", "audio", "web_search_options", "verbosity"});
  if (auto modalities = fields.texts("modalities", kMaxModalities))
    for (const std::string& m : *modalities)
      if (m != "text")
        fields.fail("modalities",
                    fmt::format("found {}, allowed \"text\"", describe(json::value(m))),
                    "unsupported_parameter");
}

void read(const Api& api, const HttpRequest& http, JsonFields& fields, Call& call) {
  Request& r = call.request;
  read_common(api, http, fields, call);
  auto newer = fields.clamped("max_completion_tokens", 1, api.context);
  auto older = fields.clamped("max_tokens", 1, api.context);
  if (newer || older) r.max_tokens = static_cast<int>(newer ? *newer : *older);
  r.logprobs = fields.boolean("logprobs").value_or(false);
  read_top_logprobs(fields, "top_logprobs", r);
  if (r.top_logprobs > 0 && !r.logprobs)
    fields.fail("top_logprobs", "allowed only with \"logprobs\": true");
  refuse_chat_fields(fields);
  std::vector<std::int32_t> prompt;
  auto constraint = read_constraint(fields);
  call.chat = read_chat_call(api, fields, std::move(constraint), r, prompt);
  std::vector<std::string> stops;
  if (api.chat != nullptr) stops = api.chat->stops();
  read_stops(api, fields, std::move(stops), call);
  if (fields.error()) return;
  // A token that ends a turn ends the text as EOS does.
  if (!r.ignore_eos)
    for (std::int32_t id : api.chat->stop_token_ids()) r.stop_token_ids.push_back(id);
  call.prompts.push_back(std::move(prompt));
  check_lengths(api, fields, "messages", call);
}

// A stream has a call in parts: id and name, then pieces of the arguments.
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
  out += call.request.logprobs ? chat_logprobs(call, tokenizer, part) : "null";
  return out + finish_reason_json(part) + "}";
}

}  // namespace

extern const TextEndpoint kChatCompletions;
const TextEndpoint kChatCompletions{read, choice, "chatcmpl-", "chat.completion",
                                    "chat.completion.chunk"};

extern const Endpoint kEndpoint_chat_completions;
const Endpoint kEndpoint_chat_completions{
    "POST", {"/v1/chat/completions"}, generate<kChatCompletions>};

}  // namespace vitrine
