// A request for generated text: OpenAI's bodies as native types. Everything from the client is
// checked here and in the endpoint's file.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chat/chat_template.h"
#include "engine/request.h"
#include "server/api.h"
#include "server/request/json_fields.h"
#include "tokenizer/text_stream.h"

namespace vitrine {

// How the answers of a chat are read.
struct ChatCall {
  const ToolFormat* format = nullptr;   // null: no tool calls are looked for
  const ReasoningTags* tags = nullptr;  // null: no reasoning
  bool in_reasoning = false;            // the prompt ended inside reasoning
  bool parallel = true;                 // several calls in an answer
  std::vector<std::int32_t> shown;      // special tokens that the parser must see
  bool reasoned = false;                // the prompt ended after complete reasoning
};

// What a client asked for at one of the two endpoints.
struct Call {
  std::vector<std::vector<std::int32_t>> prompts;
  std::vector<std::string> echoes;  // completions with echo: each prompt's text
  Request request;                  // shared by all prompts; its own prompt is empty
  std::shared_ptr<const StopStrings> stops;
  std::optional<ChatCall> chat;  // chat completions only
  bool stream = false, include_usage = false, timings = false;
  bool record = false;    // its texts are kept
  bool predicts = false;  // it came with a prediction of the answer
  // Of Request::choices so many are shown for each prompt, the best by mean log probability; 0: all.
  int shown = 0;
  // Of a fork: its parent's label, and what the tokens of Request::begun are.
  std::string parent;
  std::vector<SaidKind> begun_kinds;
};

struct ParsedCall {
  Call call;
  std::optional<ApiError> error;
};

// Reads the fields of one endpoint; errors are left in `fields`.
using ReadFields = void (*)(const Api& api, const HttpRequest& http, JsonFields& fields,
                            Call& call);
// The whole request, for a worker: it parses, compiles, and turns text into tokens.
ParsedCall read_call(const Api& api, const HttpRequest& http, ReadFields read);

// For ReadFields functions. The fields that mean the same at every such endpoint:
void read_common(const Api& api, const HttpRequest& http, JsonFields& fields, Call& call);
// stream and stream_options; `stream`: where it does not say.
void read_stream(JsonFields& fields, Call& call, bool stream);
// "vitrine"; `record`: where it does not say.
void read_vitrine(const Api& api, JsonFields& fields, Call& call, bool record);
// "sampling" and "samplers", laid over the parameters of a request that was recorded:
SamplingParams read_overrides(const Api& api, JsonFields& fields, const SamplingParams& recorded);
// "stop", added to `own`, the strings that end the text anyway (of a chat template):
void read_stops(const Api& api, JsonFields& fields, std::vector<std::string> own, Call& call);
// How many of the best tokens to report per position; `name` is the field:
void read_top_logprobs(JsonFields& fields, std::string_view name, Request& request);
// Prompts and min_tokens against the context and max_tokens; `name` is the field of the prompts:
void check_lengths(const Api& api, JsonFields& fields, const char* name, const Call& call);

}  // namespace vitrine
