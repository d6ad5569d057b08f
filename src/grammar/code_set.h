// Sets of Unicode characters, and their UTF-8 as sequences of byte ranges.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace vitrine::grammar {

class CodeSet {
 public:
  struct Range {
    char32_t first, last;
  };

  void add(char32_t first, char32_t last) { ranges_.push_back({first, last}); }
  void add(char32_t c) { add(c, c); }
  void add(const CodeSet& other);
  // Sorted, disjoint, without surrogates and values past U+10FFFF.
  void normalize();
  // Of a normalized set.
  CodeSet complement() const;
  bool empty() const { return ranges_.empty(); }
  const std::vector<Range>& ranges() const { return ranges_; }

  static CodeSet any();

 private:
  std::vector<Range> ranges_;
};

struct ByteRange {
  std::uint8_t first, last;
};
// One to four byte ranges, one after the other.
struct Utf8Sequence {
  std::array<ByteRange, 4> bytes;
  int size;
};

// Calls `use` with sequences that together spell exactly the characters of a normalized set.
void for_each_sequence(const CodeSet& set, const std::function<void(const Utf8Sequence&)>& use);

}  // namespace vitrine::grammar
