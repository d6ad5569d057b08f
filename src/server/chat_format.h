// Messages of a chat as the tokens of a prompt: ChatML where the tokenizer has its markers,
// otherwise a plain form. The caller's text never becomes a special token.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "server/http.h"
#include "tokenizer/tokenizer.h"

namespace vitrine {

inline constexpr std::size_t kMaxMessages = 10000;

struct ChatMessage {
  std::string role;  // "system", "user", "assistant" or "tool"
  std::string content;
};

// Reads "messages". Content is a string or a list of text parts; nothing is ever fetched.
std::optional<HttpError> read_messages(const json::array& list, std::vector<ChatMessage>& out);

struct ChatPrompt {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> stop_token_ids;  // that end the assistant's turn
  std::vector<std::string> stops;            // the same as text, where there is no such token
};

// Up to where the assistant's answer begins.
ChatPrompt format_chat(const Tokenizer& tokenizer, const std::vector<ChatMessage>& messages);
// "chatml" or "plain"
const char* chat_format_name(const Tokenizer& tokenizer);

}  // namespace vitrine
