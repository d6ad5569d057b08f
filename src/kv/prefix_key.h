// The name of a full page: a keyed 128-bit hash over all tokens from the start of the sequence to
// the end of the page, and over a salt. Chained page by page, so that equal keys mean equal
// prefixes. The secret is random, so that clients cannot construct two prefixes that collide.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace vitrine {

struct PrefixKey {
  std::uint64_t a = 0, b = 0;
  bool operator==(const PrefixKey&) const = default;
};

class PrefixHasher {
 public:
  PrefixHasher();  // with a secret of its own
  explicit PrefixHasher(std::array<std::uint64_t, 2> secret) : secret_(secret) {}
  // The key before the first page. Sequences with different salts share nothing.
  PrefixKey root(std::string_view salt) const;
  // The key of a page from the key before it and its tokens.
  PrefixKey extend(const PrefixKey& parent, std::span<const std::int32_t> tokens) const;

 private:
  std::array<std::uint64_t, 2> secret_;
};

}  // namespace vitrine
