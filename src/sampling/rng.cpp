#include "sampling/rng.h"

#include <random>

namespace vitrine {
namespace {

constexpr std::uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

}  // namespace

PhiloxCounter philox4x32_10(PhiloxCounter c, PhiloxKey key) {
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t a = std::uint64_t{kMultiplier0} * c[0];
    const std::uint64_t b = std::uint64_t{kMultiplier1} * c[2];
    const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
    const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
    c = {high(b) ^ c[1] ^ key[0], low(b), high(a) ^ c[3] ^ key[1], low(a)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return c;
}

std::uint64_t random_bits(std::uint64_t seed, std::uint32_t choice_index, std::uint64_t position) {
  const PhiloxCounter out =
      philox4x32_10({static_cast<std::uint32_t>(position),
                     static_cast<std::uint32_t>(position >> 32), choice_index, 0},
                    {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  return std::uint64_t{out[1]} << 32 | out[0];
}

std::uint64_t draw_seed() {
  std::random_device device;
  const std::uint64_t high = device();
  return high << 32 | device();
}

}  // namespace vitrine
