// Which message gave which bytes and which tokens of a prompt, and which of them are special.
#pragma once

#include "chat/chat_template.h"

namespace vitrine {

enum class SpanKind : std::uint8_t {
  kTemplate,  // the template's own text
  kSpecial,   // the same, where it became a special token
  kSystem,    // a message's, by its role
  kUser,
  kAssistant,
  kTool,   // an answer of a tool, or the descriptions of tools (no message)
  kOther,  // the caller's, of no message: variables of the template
};
const char* span_kind_name(SpanKind kind);

struct PromptSpan {
  std::size_t begin, end;
  std::int32_t message;  // -1: none
  SpanKind kind;
  bool operator==(const PromptSpan&) const = default;
};

struct PromptSpans {
  // Partitions of the prompt's bytes and of its tokens. A token is where its first byte is.
  std::vector<PromptSpan> bytes, tokens;
  std::vector<ByteSpan> places;  // of each token, in the prompt's bytes
};

// kTooLarge: over Tokenizer::kMostPlaced bytes. `prompt` is what a template of that tokenizer made of
// `messages`.
Result<PromptSpans> prompt_spans(const ChatPrompt& prompt, const std::vector<ChatMessage>& messages,
                                 const Tokenizer& tokenizer);

}  // namespace vitrine
