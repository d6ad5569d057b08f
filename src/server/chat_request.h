// The fields of a chat request that make its prompt: messages, tools, the template's arguments.
#pragma once

#include <optional>
#include <vector>

#include "grammar/compiler.h"
#include "server/json_fields.h"
#include "server/openai_request.h"

namespace vitrine {

inline constexpr std::size_t kMaxMessages = 10000;
inline constexpr std::size_t kMaxTools = 1024;
inline constexpr std::size_t kMaxToolCalls = 1024;  // of a message
inline constexpr std::size_t kMaxToolName = 256;    // bytes

// Reads "messages". Content is a string or a list of text parts; nothing is ever fetched.
std::optional<HttpError> read_messages(const json::array& list, std::vector<ChatMessage>& out);
// All of the conversation: also tools, tool_choice "none", chat_template_kwargs, reasoning_effort.
ChatInput read_chat_input(JsonFields& fields);
// The prompt's tokens, how to read the answers, and of the request the constraint and the budget
// for reasoning. `text`: what the client wants the answer's text to be.
ChatCall read_chat_call(const Api& api, JsonFields& fields, std::optional<ConstraintSpec> text,
                        Request& request, std::vector<std::int32_t>& prompt);
// How a template's refusal looks to a client.
HttpError template_error(const Error& error);

}  // namespace vitrine
