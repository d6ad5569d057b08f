// What the answer of a chat must be: text of a given form, tool calls, reasoning within a budget.
#pragma once

#include <optional>
#include <string>

#include "chat/message.h"
#include "grammar/compiler.h"
#include "server/request/call.h"
#include "server/request/json_fields.h"

namespace vitrine {

// Which calls the answer must have.
struct ToolChoice {
  bool required = false;
  std::string name;  // empty: any of the tools
};

// Reads reasoning_budget and fills in the request's constraint and reasoning budget. `text`: the
// form that the client wants for the text. Reasoning may precede the constrained text if the prompt
// has begun it or the request has a budget for it.
void constrain_chat(const Api& api, JsonFields& fields, const ToolChoice& choice,
                    const ChatInput& input, std::optional<ConstraintSpec> text,
                    const ChatCall& chat, Request& request);

}  // namespace vitrine
