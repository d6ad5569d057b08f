// Generated text, from a request's body to the answer's last byte.
#pragma once

#include <span>
#include <string>

#include "server/api.h"
#include "server/request/call.h"

namespace vitrine {

// What one choice has to show: since its last frame, or all of it.
struct Part {
  int index = 0;
  bool first = false;  // nothing was shown before
  std::string text;    // of a chat: the content
  std::string reasoning;
  struct CallPart {
    int index = 0;          // of the call in the answer
    std::string id, name;   // with its first part
    std::string arguments;  // more of them
  };
  std::vector<CallPart> calls;
  const char* finish_reason = nullptr;  // null: it goes on
  bool scored = false;                  // of beam search: with its finish reason comes its score
  std::optional<double> score;          // none: there is no such text
  std::span<const TokenEvent> tokens = {};
  std::span<const TokenLogprob> top = {};  // Request::top_logprobs for each of `tokens`
  std::size_t offset = 0;                  // characters that were shown before
  // With the first part of an answer that echoes its prompt.
  std::span<const std::int32_t> prompt = {};
  const PromptLogprobs* prompt_logprobs = nullptr;
};

// `,"finish_reason":..`, and of a text that was searched `,"score":..`
std::string finish_reason_json(const Part& part);

// An endpoint that generates text: how its requests are read and its answers look.
struct TextEndpoint {
  ReadFields read;
  // One entry of "choices" as JSON; `delta`: of a stream.
  std::string (*choice)(const Call& call, const Tokenizer* tokenizer, const Part& part, bool delta);
  const char* id_prefix;
  const char* object;
  const char* chunk_object;
};

// Reads a request, on a worker, and says how its answer looks.
using ReadCall = ParsedCall (*)(const Api& api, const HttpRequest& http,
                                const TextEndpoint*& endpoint);
asio::awaitable<void> generate_call(Api& api, Exchange& exchange, ReadCall read);

// Answers a request. One job on a worker takes it from its body to the engine's queue; tokens are
// then turned into text on the connection's strand as they come. A client that leaves cancels what
// runs.
asio::awaitable<void> generate_text(Api& api, Exchange& exchange, const TextEndpoint& endpoint);

// The same as the handler of an Endpoint.
template <const TextEndpoint& kEndpoint>
asio::awaitable<void> generate(Api& api, Exchange& exchange) {
  return generate_text(api, exchange, kEndpoint);
}

}  // namespace vitrine
