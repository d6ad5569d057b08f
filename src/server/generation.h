// Drives the choices of one call from the engine's streams to the client: text, frames, the end.
#pragma once

#include <span>
#include <string>

#include "server/api.h"
#include "server/openai_request.h"

namespace vitrine {

// What one choice says: since its last frame, or all of it.
struct Part {
  int index = 0;
  bool first = false;  // nothing was said before
  std::string text;    // of a chat: the content
  std::string reasoning;
  struct CallPart {
    int index = 0;          // of the call in the answer
    std::string id, name;   // with its first part
    std::string arguments;  // more of them
  };
  std::vector<CallPart> calls;
  const char* finish_reason = nullptr;  // null: it goes on
  std::span<const TokenEvent> tokens = {};
  std::span<const TokenLogprob> top = {};  // Request::top_logprobs for each of `tokens`
  std::size_t offset = 0;                  // characters that were said before
  // With the first part of an answer that echoes its prompt.
  std::span<const std::int32_t> prompt = {};
  const PromptLogprobs* prompt_logprobs = nullptr;
};

// How an endpoint's answers look.
struct Endpoint {
  const char* id_prefix;
  const char* object;
  const char* chunk_object;
  // One entry of "choices" as JSON; `delta`: of a stream.
  std::string (*choice)(const Call& call, const Tokenizer* tokenizer, const Part& part, bool delta);
};

// Answers the call. The client's going away cancels what runs.
asio::awaitable<void> answer_call(Api& api, Exchange& exchange, const Endpoint& endpoint,
                                  Call call);

}  // namespace vitrine
