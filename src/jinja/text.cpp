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

Text::Text(std::string bytes, bool caller) : bytes_(std::move(bytes)) {
  if (caller) mark(0, bytes_.size());
}

bool Text::is_caller(std::size_t at) const {
  auto span = first_after(caller_, at);
  return span != caller_.end() && span->begin <= at;
}

void Text::mark(std::size_t begin, std::size_t end) {
  if (begin == end) return;
  if (!caller_.empty() && caller_.back().end == begin)
    caller_.back().end = end;
  else
    caller_.push_back({begin, end});
}

void Text::append(std::string_view bytes, bool caller) {
  bytes_ += bytes;
  if (caller) mark(bytes_.size() - bytes.size(), bytes_.size());
}

void Text::append(const Text& other) { append(other, 0, other.size()); }

void Text::append(const Text& other, std::size_t begin, std::size_t end) {
  std::size_t base = bytes_.size();
  bytes_.append(other.bytes_, begin, end - begin);
  for (auto s = first_after(other.caller_, begin); s != other.caller_.end() && s->begin < end; ++s)
    mark(base + std::max(s->begin, begin) - begin, base + std::min(s->end, end) - begin);
}

Text Text::substr(std::size_t begin, std::size_t end) const {
  Text out;
  if (begin < end) out.append(*this, begin, end);
  out.html_ = html_;
  return out;
}

CharIndex::CharIndex(std::string_view text) : ascii_(true), size_(text.size()) {
  for (char c : text) ascii_ = ascii_ && static_cast<signed char>(c) >= 0;
  if (ascii_) return;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (!is_tail(text[i])) starts_.push_back(i);
  starts_.push_back(text.size());
}

std::size_t count_chars(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !is_tail(c); }));
}

}  // namespace vitrine::jinja
