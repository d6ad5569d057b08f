// A fuzz target is one file of this folder: fuzz_one(), called with one input after the other. What
// must hold is asked with VT_CHECK. Built by `./test fuzz` with libFuzzer, ASan and UBSan; in every
// other build replay.cpp calls it with the inputs of corpus/, as a test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/check.h"

namespace vitrine::fuzz {

class Input {
 public:
  explicit Input(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  // The first byte, for a choice; 0 where there is none.
  std::uint8_t take() {
    if (bytes_.empty()) return 0;
    std::uint8_t out = bytes_[0];
    bytes_ = bytes_.subspan(1);
    return out;
  }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }
  std::span<const std::byte> bytes() const { return std::as_bytes(bytes_); }
  std::size_t size() const { return bytes_.size(); }

 private:
  std::span<const std::uint8_t> bytes_;
};

}  // namespace vitrine::fuzz

void fuzz_one(vitrine::fuzz::Input input);
