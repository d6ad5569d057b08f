// OpenAI's request bodies as native types. Everything from the client is checked here.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/request.h"
#include "server/api.h"
#include "tokenizer/text_stream.h"

namespace vitrine {

inline constexpr std::size_t kMaxPrompts = 128;  // also of prompts times choices

// How the answers of a chat are read.
struct ChatCall {
  const ToolFormat* format = nullptr;   // null: no tool calls are looked for
  const ReasoningTags* tags = nullptr;  // null: no reasoning
  bool in_reasoning = false;            // the prompt ended inside of it
  bool parallel = true;                 // several calls in an answer
  std::vector<std::int32_t> shown;      // special tokens that the parser has to see
  bool reasoned = false;                // the prompt ended behind reasoning
};

// What a client asked for at one of the two endpoints.
struct Call {
  std::vector<std::vector<std::int32_t>> prompts;
  std::vector<std::string> echoes;  // completions with echo: each prompt's text
  Request request;                  // what the prompts share; its own prompt is empty
  std::shared_ptr<const StopStrings> stops;
  std::optional<ChatCall> chat;  // chat completions only
  bool stream = false, include_usage = false, timings = false;
};

struct ParsedCall {
  Call call;
  std::optional<HttpError> error;
};

// For the workers: they parse, and turn text into tokens.
ParsedCall read_completion(const Api& api, const HttpRequest& http);
ParsedCall read_chat(const Api& api, const HttpRequest& http);

// How an engine's refusal looks to a client.
HttpError engine_error(const Error& error);

}  // namespace vitrine
