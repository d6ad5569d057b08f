// The texts of a model's tokens and the tokens that end a text, for samplers that look at them where a token is drawn.
// Made once for a model and shared by its requests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vitrine {

// Immutable.
class TokenTexts {
 public:
  // By id; empty for tokens that are no text. `ends`: ids of tokens that end a text.
  TokenTexts(const std::vector<std::string>& texts, std::vector<std::int32_t> ends);

  std::string_view text(std::int32_t id) const;  // empty for an id outside too
  bool ends(std::int32_t id) const;
  std::span<const std::int32_t> ends() const { return ends_; }  // ascending, at least one
  std::size_t bytes() const;

 private:
  std::string all_;                    // one after the other
  std::vector<std::uint32_t> begins_;  // by id, and the end of the last
  std::vector<std::int32_t> ends_;
};

// Those of a model, made when they are first needed. Thread-safe.
class TokenTextsSource {
 public:
  // `texts` gives all, and is the same in all calls; so are `ends`.
  std::shared_ptr<const TokenTexts> get(const std::function<std::vector<std::string>()>& texts,
                                        std::span<const std::int32_t> ends) const;

 private:
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const TokenTexts> made_;  // guarded by mutex_
};

}  // namespace vitrine
