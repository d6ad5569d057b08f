// Random numbers without state: Philox4x32-10, a keyed bijection of a 128-bit counter (Salmon,
// Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011). Integers only, so
// host and device agree.
#pragma once

#include <cstdint>

namespace vitrine {

struct PhiloxCounter {
  std::uint32_t a, b, c, d;
  friend bool operator==(const PhiloxCounter&, const PhiloxCounter&) = default;
};

constexpr PhiloxCounter philox4x32_10(PhiloxCounter x, std::uint64_t key) {
  constexpr std::uint64_t kMultiplierA = 0xD2511F53, kMultiplierC = 0xCD9E8D57;
  constexpr std::uint32_t kWeylLow = 0x9E3779B9, kWeylHigh = 0xBB67AE85;
  auto low = static_cast<std::uint32_t>(key), high = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p = kMultiplierA * x.a, q = kMultiplierC * x.c;
    x = {static_cast<std::uint32_t>(q >> 32) ^ x.b ^ low, static_cast<std::uint32_t>(q),
         static_cast<std::uint32_t>(p >> 32) ^ x.d ^ high, static_cast<std::uint32_t>(p)};
    low += kWeylLow;
    high += kWeylHigh;
  }
  return x;
}

}  // namespace vitrine
