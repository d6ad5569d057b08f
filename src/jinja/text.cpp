#include "jinja/text.h"

#include <algorithm>

namespace vitrine::jinja {
namespace {

bool is_tail(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// The first span that ends after `at`.
std::vector<Span>::const_iterator first_after(const std::vector<Span>& spans, std::size_t at) {
  return std::upper_bound(spans.begin(), spans.end(), at,
                          [](std::size_t value, const Span& s) { return value < s.end; });
}

}  // namespace

Text::Text(std::string bytes, bool caller, std::int32_t source) : bytes_(std::move(bytes)) {
  charge_bytes(bytes_.size(), bytes_.size());
  if (caller) mark(0, bytes_.size(), source);
}

Text& Text::operator=(const Text& other) {
  charge_bytes(other.size() + other.caller_.size() * sizeof(Span), other.size());
  bytes_ = other.bytes_;
  caller_ = other.caller_;
  html_ = other.html_;
  return *this;
}

void Text::mark(std::size_t begin, std::size_t end, std::int32_t source) {
  if (begin == end) return;
  if (!caller_.empty() && caller_.back().end == begin && caller_.back().source == source) {
    caller_.back().end = end;
  } else {
    charge_bytes(sizeof(Span));
    caller_.push_back({begin, end, source});
  }
}

void Text::append(std::string_view bytes, bool caller, std::int32_t source) {
  charge_bytes(bytes.size(), bytes_.size() + bytes.size());
  bytes_ += bytes;
  if (caller) mark(bytes_.size() - bytes.size(), bytes_.size(), source);
}

void Text::append(const Text& other) { append(other, 0, other.size()); }

void Text::append(const Text& other, std::size_t begin, std::size_t end) {
  std::size_t base = bytes_.size();
  charge_bytes(end - begin, base + end - begin);
  bytes_.append(other.bytes_, begin, end - begin);
  for (auto s = first_after(other.caller_, begin); s != other.caller_.end() && s->begin < end; ++s)
    mark(base + std::max(s->begin, begin) - begin, base + std::min(s->end, end) - begin, s->source);
}

Text Text::substr(std::size_t begin, std::size_t end) const {
  Text out;
  if (begin < end) out.append(*this, begin, end);
  out.html_ = html_;
  return out;
}

CharIndex::CharIndex(std::string_view text) : text_(text), count_(count_chars(text)) {
  if (count_ == text.size()) return;
  charge_bytes(count_ / kStride * sizeof(std::size_t));
  std::size_t seen = 0;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (!is_tail(text[i]) && seen++ % kStride == 0) starts_.push_back(i);
}

std::size_t CharIndex::at(std::size_t character) const {
  if (character >= count_) return text_.size();
  if (starts_.empty()) return character;
  std::size_t out = starts_[character / kStride];
  for (std::size_t left = character % kStride; left > 0; --left) do
      ++out;
    while (is_tail(text_[out]));
  return out;
}

std::size_t count_chars(std::string_view text) {
  charge_read(text.size());
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !is_tail(c); }));
}

}  // namespace vitrine::jinja
