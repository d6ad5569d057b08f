// The fields of a chat request that make its prompt: messages, tools, the template's arguments.
#pragma once

#include <optional>
#include <vector>

#include "grammar/compiler.h"
#include "server/request/call.h"
#include "server/request/json_fields.h"

namespace vitrine {

// Reads "messages". Content is a string or a list of text parts; nothing is ever fetched.
std::optional<ApiError> read_messages(const json::array& list, std::vector<ChatMessage>& out);
// All of the conversation: also tools, tool_choice "none", chat_template_kwargs, reasoning_effort.
ChatInput read_chat_input(JsonFields& fields);
// Fills the prompt's tokens and the request's constraint and reasoning budget; returns how to read
// the answers. `text`: the form that the client wants for the answer's text.
ChatCall read_chat_call(const Api& api, JsonFields& fields, std::optional<ConstraintSpec> text,
                        Request& request, std::vector<std::int32_t>& prompt);
// How a template's refusal looks to a client.
ApiError template_error(const Error& error);

}  // namespace vitrine
