// Tokens that a request names: what samplers are told besides numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"

namespace vitrine {

class TokenTexts;

struct LogitBias {
  std::int32_t id;
  float bias;
};

// Biases by ascending id, each id once.
class BiasTable {
 public:
  static constexpr std::size_t kMaxEntries = 1024;
  static constexpr float kMaxBias = 100;

  // Refuses negative or repeated ids, biases outside -100 to 100, and more than 1024 entries.
  static Result<BiasTable> make(std::vector<LogitBias> entries);

  BiasTable() = default;
  std::span<const LogitBias> entries() const { return entries_; }
  const LogitBias* find(std::int32_t id) const;  // null when it has no bias

 private:
  std::vector<LogitBias> entries_;
};

struct TokenLists {
  static constexpr std::size_t kMaxAllowed = 65536;
  static constexpr std::size_t kMaxWords = 1024;
  static constexpr std::size_t kMaxWordTokens = 64;

  // Choices of a request share them. Null: not set.
  template <typename T>
  using Shared = std::shared_ptr<const std::vector<T>>;

  BiasTable bias;
  Shared<std::int32_t> allowed;   // ascending; only these may be drawn
  Shared<std::int32_t> breakers;  // ascending; dry's copies end at them
  Shared<std::vector<std::int32_t>> bad_words;
  std::shared_ptr<const TokenTexts> texts;  // of all tokens; of the model, not of the request
};

}  // namespace vitrine
