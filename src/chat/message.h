// A conversation, as native types.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace vitrine {

struct ToolCall {
  std::string id, name;
  std::string arguments;  // JSON as text, as the model wrote it
};

struct ChatMessage {
  std::string role;  // "system", "user", "assistant" or "tool"
  std::string content;
  bool has_content = true;  // false: null or absent, with tool calls
  std::vector<ToolCall> tool_calls;
  std::string tool_call_id, name, reasoning;  // empty: not given
};

struct ChatInput {
  std::vector<ChatMessage> messages;
  json::array tools;    // as the client sent them
  json::object kwargs;  // chat_template_kwargs; no reserved names
  bool add_generation_prompt = true;
};

}  // namespace vitrine
