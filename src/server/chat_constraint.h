// What the answer of a chat must be: text of a given form, tool calls, reasoning within a budget.
#pragma once

#include <optional>
#include <string>

#include "chat/message.h"
#include "grammar/compiler.h"
#include "server/json_fields.h"
#include "server/openai_request.h"

namespace vitrine {

// Which calls the answer must have.
struct ToolChoice {
  bool required = false;
  std::string name;  // empty: any of the tools
};

// Fills in the request's constraint and its budget for reasoning, which it reads. `text`: what the
// client wants the text to be. Reasoning comes before the constrained text, where the prompt has
// begun it or there is a budget for it.
void constrain_chat(const Api& api, JsonFields& fields, const ToolChoice& choice,
                    const ChatInput& input, std::optional<ConstraintSpec> text,
                    const ChatCall& chat, Request& request);

}  // namespace vitrine
