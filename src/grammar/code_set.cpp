#include "grammar/code_set.h"

#include <algorithm>

namespace vitrine::grammar {
namespace {

constexpr char32_t kLast = 0x10FFFF;
constexpr char32_t kLastOfLength[] = {0x7F, 0x7FF, 0xFFFF, kLast};

int encode(char32_t c, int length, std::uint8_t* out) {
  if (length == 1) {
    out[0] = static_cast<std::uint8_t>(c);
    return 1;
  }
  for (int i = length - 1; i > 0; --i, c >>= 6) out[i] = static_cast<std::uint8_t>(0x80 | (c & 63));
  constexpr std::uint8_t kLead[] = {0, 0, 0xC0, 0xE0, 0xF0};
  out[0] = static_cast<std::uint8_t>(kLead[length] | c);
  return length;
}

// Characters of one encoded length. A range whose continuation bytes do not span their full range
// is split until all its parts do.
void split(char32_t first, char32_t last, int length,
           const std::function<void(const Utf8Sequence&)>& use) {
  for (int i = 1; i < length; ++i) {
    const char32_t low = (char32_t{1} << (6 * i)) - 1;
    if ((first & ~low) == (last & ~low)) continue;
    if ((first & low) != 0) {
      split(first, first | low, length, use);
      split((first | low) + 1, last, length, use);
      return;
    }
    if ((last & low) != low) {
      split(first, (last & ~low) - 1, length, use);
      split(last & ~low, last, length, use);
      return;
    }
  }
  std::uint8_t a[4], b[4];
  Utf8Sequence out{{}, encode(first, length, a)};
  encode(last, length, b);
  for (int i = 0; i < length; ++i) out.bytes[i] = {a[i], b[i]};
  use(out);
}

}  // namespace

void CodeSet::add(const CodeSet& other) {
  ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
}

void CodeSet::normalize() {
  std::vector<Range> in;
  for (Range r : ranges_) {
    r.last = std::min(r.last, kLast);
    if (r.first < 0xD800 && r.last >= 0xD800) in.push_back({r.first, 0xD7FF});
    if (r.first < 0xD800 && r.last < 0xD800) in.push_back(r);
    if (r.last > 0xDFFF) in.push_back({std::max<char32_t>(r.first, 0xE000), r.last});
  }
  std::erase_if(in, [](const Range& r) { return r.first > r.last; });
  std::sort(in.begin(), in.end(), [](auto& a, auto& b) { return a.first < b.first; });
  ranges_.clear();
  for (const Range& r : in) {
    if (!ranges_.empty() && r.first <= ranges_.back().last + 1)
      ranges_.back().last = std::max(ranges_.back().last, r.last);
    else
      ranges_.push_back(r);
  }
}

CodeSet CodeSet::complement() const {
  CodeSet out;
  char32_t next = 0;
  for (const Range& r : ranges_) {
    if (r.first > next) out.add(next, r.first - 1);
    next = r.last + 1;
  }
  if (next <= kLast) out.add(next, kLast);
  out.normalize();
  return out;
}

CodeSet CodeSet::any() {
  CodeSet out;
  out.add(0, kLast);
  out.normalize();
  return out;
}

void for_each_sequence(const CodeSet& set, const std::function<void(const Utf8Sequence&)>& use) {
  for (const CodeSet::Range& r : set.ranges()) {
    char32_t from = 0;
    for (int length = 1; length <= 4; ++length) {
      const char32_t first = std::max(r.first, from),
                     last = std::min(r.last, kLastOfLength[length - 1]);
      if (first <= last) split(first, last, length, use);
      from = kLastOfLength[length - 1] + 1;
    }
  }
}

}  // namespace vitrine::grammar
