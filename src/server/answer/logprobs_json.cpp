#include "server/answer/logprobs_json.h"

#include <algorithm>
#include <cmath>

#include "base/utf8.h"

namespace vitrine {
namespace {

// JSON has no -inf; OpenAI reports this value for very unlikely tokens.
constexpr double kLeastLogprob = -9999;

double shown(float logprob) {
  return std::isfinite(logprob) ? static_cast<double>(logprob) : kLeastLogprob;
}

std::string legacy_token(const Tokenizer* tokenizer, std::int32_t id) {
  if (tokenizer == nullptr) return fmt::format("token_id:{}", id);
  std::string piece = tokenizer->piece(id);
  if (utf8_valid(piece)) return piece;
  std::string out = "bytes:";
  for (unsigned char c : piece) out += fmt::format("\\x{:02x}", c);
  return out;
}

std::span<const TokenLogprob> top_of(const Call& call, const Part& part, std::size_t i) {
  auto n = static_cast<std::size_t>(call.request.top_logprobs);
  return part.top.size() < (i + 1) * n ? std::span<const TokenLogprob>()
                                       : part.top.subspan(i * n, n);
}

// A list as text: an answer may have so many tokens that their JSON values would take far more.
class TextList {
 public:
  void add(const json::value& item) {
    text_ += text_.empty() ? '[' : ',';
    text_ += to_json(item);
  }
  std::string take() { return text_.empty() ? "[]" : std::move(text_) + "]"; }

 private:
  std::string text_;
};

class LegacyList {
 public:
  LegacyList(const Tokenizer* tokenizer, std::size_t offset)
      : tokenizer_(tokenizer), offset_(offset) {}

  void add(std::int32_t id, json::value logprob, std::span<const TokenLogprob> top) {
    tokens_.add(json::value(legacy_token(tokenizer_, id)));
    offsets_.add(offset_);
    if (tokenizer_ != nullptr && !tokenizer_->is_special(id))
      offset_ += count_characters(tokenizer_->piece(id));
    json::object best;
    for (const TokenLogprob& t : top)
      if (t.token >= 0) best[legacy_token(tokenizer_, t.token)] = shown(t.logprob);
    // The token itself is always in the map, as OpenAI has it.
    if (!logprob.is_null()) best[legacy_token(tokenizer_, id)] = logprob;
    top_.add(logprob.is_null() ? json::value() : json::value(std::move(best)));
    logprobs_.add(logprob);
  }
  std::string take(bool with_top) {
    return fmt::format(R"({{"tokens":{},"token_logprobs":{},"top_logprobs":{},"text_offset":{}}})",
                       tokens_.take(), logprobs_.take(), with_top ? top_.take() : "null",
                       offsets_.take());
  }

 private:
  const Tokenizer* tokenizer_;
  std::size_t offset_;
  TextList tokens_, logprobs_, top_, offsets_;
};

json::object chat_token(const Tokenizer& tokenizer, std::int32_t id, float logprob) {
  std::string piece = tokenizer.piece(id);
  json::array bytes;
  for (unsigned char c : piece) bytes.emplace_back(static_cast<int>(c));
  return {
      {"token", utf8_sanitize(piece)}, {"logprob", shown(logprob)}, {"bytes", std::move(bytes)}};
}

}  // namespace

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string completion_logprobs(const Call& call, const Tokenizer* tokenizer, const Part& part) {
  LegacyList list(tokenizer, part.offset);
  if (part.prompt_logprobs != nullptr) {
    const PromptLogprobs& p = *part.prompt_logprobs;
    for (std::size_t i = 0; i < part.prompt.size(); ++i) {
      bool known = i > 0 && i < p.logprobs.size();
      std::span<const TokenLogprob> top;
      if (known && i < p.top.size()) top = p.top[i];
      list.add(part.prompt[i], known ? json::value(shown(p.logprobs[i])) : json::value(), top);
    }
  }
  for (std::size_t i = 0; i < part.tokens.size(); ++i)
    list.add(part.tokens[i].token, shown(part.tokens[i].logprob), top_of(call, part, i));
  return list.take(call.request.top_logprobs > 0);
}

std::string chat_logprobs(const Call& call, const Tokenizer* tokenizer, const Part& part) {
  TextList content;
  for (std::size_t i = 0; i < part.tokens.size(); ++i) {
    json::object token = chat_token(*tokenizer, part.tokens[i].token, part.tokens[i].logprob);
    json::array top;
    for (const TokenLogprob& t : top_of(call, part, i))
      if (t.token >= 0) top.emplace_back(chat_token(*tokenizer, t.token, t.logprob));
    token["top_logprobs"] = std::move(top);
    content.add(std::move(token));
  }
  return fmt::format(R"({{"content":{},"refusal":null}})", content.take());
}

}  // namespace vitrine
