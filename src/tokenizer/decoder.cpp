#include "tokenizer/decoder.h"

#include <algorithm>
#include <cstring>

#include "base/utf8.h"
#include "tokenizer/bpe.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/vocab.h"

namespace vitrine {
namespace {

constexpr std::string_view kReplacementText = "\uFFFD";

// English spacing that word tokenizers lose, in the order of BERT's reference.
std::string clean_up(std::string text) {
  static constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
  };
  // Every rule starts with a space and one of these.
  bool any = false;
  for (std::size_t i = 0; i + 1 < text.size() && !any; ++i)
    any = text[i] == ' ' && std::strchr(".?!,'nd", text[i + 1]) != nullptr;
  if (!any) return text;
  for (auto [from, to] : kRules) text = replace_all(text, from, to);
  return text;
}

// How many copies of `content` (at most `most`) end `text`.
std::size_t count_at_end(std::string_view text, std::string_view content, std::size_t most) {
  std::size_t count = 0;
  while (count < most && text.ends_with(content)) {
    text.remove_suffix(content.size());
    ++count;
  }
  return count;
}

// Length of the longest end of `text` that a later part could complete to `wanted`.
std::size_t partial_match(std::string_view text, std::string_view wanted) {
  for (std::size_t n = std::min(text.size(), wanted.size() - 1); n > 0; --n)
    if (text.ends_with(wanted.substr(0, n))) return n;
  return 0;
}

// Where the last of the matches ends that a search from the left finds; 0 when there is none.
std::size_t last_match_end(std::string_view text, std::string_view wanted) {
  std::size_t end = 0;
  for (std::size_t at; (at = text.find(wanted, end)) != std::string_view::npos;)
    end = at + wanted.size();
  return end;
}

}  // namespace

void TokenDecoder::add(dec::Step step) { steps_.push_back(std::move(step)); }

std::string TokenDecoder::piece(std::string_view content, bool raw) const {
  std::string text(content);
  for (const dec::Step& step : steps_) {
    if (const auto* s = std::get_if<dec::Replace>(&step)) {
      if (!s->text.empty()) text = replace_all(text, s->text, s->content);
    } else if (const auto* s = std::get_if<dec::ReplaceRegex>(&step)) {
      text = s->regex.replace_all(text, s->content);
    } else if (const auto* s = std::get_if<dec::Metaspace>(&step)) {
      text = replace_all(text, s->replacement, " ");
    } else if (std::holds_alternative<dec::ByteFallback>(step) ||
               std::holds_alternative<dec::RawBytes>(step)) {
      int byte = byte_token_value(text);
      if (byte >= 0) text.assign(1, static_cast<char>(byte));
    } else if (std::holds_alternative<dec::ByteLevel>(step) && !raw) {
      std::string bytes;
      if (byte_level_decode(text, bytes)) text = std::move(bytes);
    }
  }
  return text;
}

DecodeStream::DecodeStream(const TokenDecoder& decoder, bool continues)
    : decoder_(&decoder), states_(decoder.steps().size()) {
  bool fused = false;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const dec::Step& step = decoder.steps()[i];
    states_[i].fused = fused;
    fused = fused || std::holds_alternative<dec::Fuse>(step) ||
            std::holds_alternative<dec::ByteLevel>(step);
    if (!continues) continue;
    states_[i].seen = 1;
    if (states_[i].fused) states_[i].stripping = false;
  }
}

void DecodeStream::push(std::string_view content, bool raw, std::string& out) {
  feed(0, {std::string(content), raw});
  emit(out, false);
}

void DecodeStream::finish(std::string& out) {
  for (std::size_t i = 0; i < states_.size(); ++i) close(i);
  emit(out, true);
}

void DecodeStream::emit(std::string& out, bool last) {
  std::size_t tail = last ? 0 : utf8_incomplete_tail(pending_);
  std::string_view ready = std::string_view(pending_).substr(0, pending_.size() - tail);
  out += utf8_sanitize(ready);
  pending_.erase(0, ready.size());
}

void DecodeStream::feed(std::size_t step, Token token) {
  if (step == states_.size()) {
    pending_ += token.text;
    return;
  }
  std::visit([&](const auto& s) { apply(s, step, std::move(token)); }, decoder_->steps()[step]);
}

// Passes on what a step has held back; called for each step in order at the end.
void DecodeStream::close(std::size_t i) {
  State& state = states_[i];
  const dec::Step& step = decoder_->steps()[i];
  if (std::holds_alternative<dec::ByteFallback>(step)) {
    flush_bytes(i);
  } else if (const auto* s = std::get_if<dec::ReplaceRegex>(&step)) {
    if (state.fused) feed(i + 1, {s->regex.replace_all(state.held, s->content), false});
  } else if (const auto* s = std::get_if<dec::WordSuffix>(&step)) {
    if (state.holds && !s->suffix.empty())
      feed(i + 1, {replace_all(state.held, s->suffix, ""), false});
    else if (state.holds)
      feed(i + 1, {state.held, false});
  } else if (std::holds_alternative<dec::Replace>(step) && !state.held.empty()) {
    feed(i + 1, {state.held, false});
  }
  state.held.clear();
  state.holds = false;
}

void DecodeStream::apply(const dec::Replace& s, std::size_t i, Token token) {
  if (s.text.empty() || !states_[i].fused) {
    if (!s.text.empty()) token.text = replace_all(token.text, s.text, s.content);
    feed(i + 1, std::move(token));
    return;
  }
  std::string& held = states_[i].held;
  held += token.text;
  std::size_t matched = last_match_end(held, s.text);
  std::size_t tail = partial_match(std::string_view(held).substr(matched), s.text);
  token.text = replace_all(std::string_view(held).substr(0, held.size() - tail), s.text, s.content);
  held.erase(0, held.size() - tail);
  feed(i + 1, std::move(token));
}

void DecodeStream::apply(const dec::ReplaceRegex& s, std::size_t i, Token token) {
  if (states_[i].fused) {
    states_[i].held += token.text;
    return;
  }
  token.text = s.regex.replace_all(token.text, s.content);
  feed(i + 1, std::move(token));
}

void DecodeStream::flush_bytes(std::size_t i) {
  std::string bytes = std::move(states_[i].held);
  states_[i].held.clear();
  if (bytes.empty()) return;
  if (utf8_valid(bytes)) {
    feed(i + 1, {std::move(bytes), false});
    return;
  }
  for (std::size_t n = 0; n < bytes.size(); ++n)
    feed(i + 1, {std::string(kReplacementText), false});
}

void DecodeStream::apply(const dec::ByteFallback&, std::size_t i, Token token) {
  int byte = byte_token_value(token.text);
  if (byte >= 0) {
    states_[i].held += static_cast<char>(byte);
    return;
  }
  flush_bytes(i);
  feed(i + 1, std::move(token));
}

void DecodeStream::apply(const dec::RawBytes&, std::size_t i, Token token) {
  int byte = byte_token_value(token.text);
  if (byte >= 0) token.text.assign(1, static_cast<char>(byte));
  feed(i + 1, std::move(token));
}

void DecodeStream::apply(const dec::Fuse&, std::size_t i, Token token) {
  feed(i + 1, std::move(token));
}

void DecodeStream::apply(const dec::Strip& s, std::size_t i, Token token) {
  State& state = states_[i];
  if (!state.fused) {
    state.stripped = 0;
    state.stripping = true;
  }
  std::size_t cut = 0;
  while (state.stripping && state.stripped < s.start &&
         std::string_view(token.text).substr(cut).starts_with(s.content)) {
    cut += s.content.size();
    ++state.stripped;
  }
  if (cut < token.text.size()) state.stripping = false;
  token.text.erase(0, cut);
  if (state.fused) {
    token.text.insert(0, state.held);
    state.held.clear();
  }
  std::size_t tail = count_at_end(token.text, s.content, s.stop) * s.content.size();
  if (state.fused) state.held = token.text.substr(token.text.size() - tail);
  token.text.resize(token.text.size() - tail);
  feed(i + 1, std::move(token));
}

void DecodeStream::apply(const dec::Metaspace& s, std::size_t i, Token token) {
  bool first = states_[i].fused || states_[i].seen++ == 0;
  token.text = replace_all(token.text, s.replacement, first && s.drop_first ? "" : " ");
  feed(i + 1, std::move(token));
}

void DecodeStream::apply(const dec::WordPiece& s, std::size_t i, Token token) {
  if (states_[i].seen++ > 0) {
    if (token.text.starts_with(s.prefix))
      token.text.erase(0, s.prefix.size());
    else
      token.text.insert(0, 1, ' ');
  }
  if (s.cleanup) token.text = clean_up(std::move(token.text));
  feed(i + 1, std::move(token));
}

void DecodeStream::apply(const dec::ByteLevel&, std::size_t i, Token token) {
  std::string bytes;
  if (!token.raw && byte_level_decode(token.text, bytes)) token.text = std::move(bytes);
  feed(i + 1, std::move(token));
}

void DecodeStream::apply(const dec::WordSuffix& s, std::size_t i, Token token) {
  State& state = states_[i];
  std::string previous = std::exchange(state.held, std::move(token.text));
  if (std::exchange(state.holds, true))
    feed(i + 1, {s.suffix.empty() ? previous : replace_all(previous, s.suffix, " "), false});
}

void DecodeStream::apply(const dec::JoinWithSpaces&, std::size_t i, Token token) {
  if (states_[i].seen++ > 0) token.text.insert(0, 1, ' ');
  feed(i + 1, std::move(token));
}

}  // namespace vitrine
