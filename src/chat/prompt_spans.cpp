#include "chat/prompt_spans.h"

#include <algorithm>

#include "tokenizer/explanation.h"

namespace vitrine {
namespace {

SpanKind kind_of(std::string_view role) {
  if (role == "user") return SpanKind::kUser;
  if (role == "assistant") return SpanKind::kAssistant;
  if (role == "tool") return SpanKind::kTool;
  return SpanKind::kSystem;
}

void add(std::vector<PromptSpan>& out, PromptSpan span) {
  if (span.begin >= span.end) return;
  if (!out.empty() && out.back().message == span.message && out.back().kind == span.kind &&
      span.kind != SpanKind::kSpecial)
    out.back().end = span.end;
  else
    out.push_back(span);
}

}  // namespace

const char* span_kind_name(SpanKind kind) {
  constexpr const char* kNames[] = {"template",  "special", "system", "user",
                                    "assistant", "tool",    "other"};
  return kNames[static_cast<std::size_t>(kind)];
}

Result<PromptSpans> prompt_spans(const ChatPrompt& prompt, const std::vector<ChatMessage>& messages,
                                 const Tokenizer& tokenizer) {
  std::vector<ByteSpan> words;
  for (const jinja::Span& span : prompt.text.caller()) words.push_back({span.begin, span.end});
  VT_TRY(TextExplanation told, tokenizer.place(prompt.text.view(), {.add_special = false}, words));
  PromptSpans out;
  std::vector<PlacedToken> specials;  // those that were spelt; unknown words are no markers
  std::size_t source = 0;
  for (const ExplainedWord& word : told.words)
    for (std::size_t i = 0; i < word.tokens.size(); ++i, ++source)
      if (word.way == WordWay::kAdded && tokenizer.is_special(word.tokens[i].id))
        specials.push_back(told.sources[source]);

  // The template's bytes up to `end`, with the special tokens in them.
  std::size_t at = 0;
  auto special = specials.begin();
  auto add_template = [&](std::size_t end) {
    for (; special != specials.end() && special->begin < end; ++special) {
      if (special->end <= at) continue;
      // One that takes the white space around it may reach into the caller's bytes.
      const std::size_t from = std::max(special->begin, at), to = std::min(special->end, end);
      add(out.bytes, {at, from, -1, SpanKind::kTemplate});
      add(out.bytes, {from, to, -1, SpanKind::kSpecial});
      at = to;
    }
    add(out.bytes, {at, end, -1, SpanKind::kTemplate});
    at = end;
  };
  for (const jinja::Span& span : prompt.text.caller()) {
    add_template(span.begin);
    const bool known = span.source > 0 && static_cast<std::size_t>(span.source) <= messages.size();
    const std::int32_t message = known ? span.source - 1 : -1;
    SpanKind kind = span.source == kFromTools ? SpanKind::kTool : SpanKind::kOther;
    if (known) kind = kind_of(messages[static_cast<std::size_t>(message)].role);
    add(out.bytes, {span.begin, span.end, message, kind});
    at = span.end;
  }
  add_template(prompt.text.size());

  auto span = out.bytes.begin();
  for (std::size_t i = 0; i < told.sources.size(); ++i) {
    const PlacedToken& token = told.sources[i];
    out.places.push_back({token.begin, token.end});
    while (span != out.bytes.end() && span + 1 != out.bytes.end() && span->end <= token.begin)
      ++span;
    PromptSpan whose{i, i + 1, -1, SpanKind::kTemplate};
    if (span != out.bytes.end()) whose.message = span->message, whose.kind = span->kind;
    add(out.tokens, whose);
  }
  return out;
}

}  // namespace vitrine
