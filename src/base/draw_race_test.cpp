#include "base/draw_race.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>
#include <vector>

namespace vitrine {
namespace {

// The vectors published with the algorithm.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, 0),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32_10({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, ~std::uint64_t{0}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(DrawRace, EveryPartOfTheKeyCounts) {
  const std::uint64_t high = std::uint64_t{1} << 40;
  std::set<std::uint64_t> seen;
  const auto see = [&](const DrawKey& key, std::uint32_t index, RandomStream stream) {
    seen.insert(low_bits(random_bits(key, index, stream)));
  };
  for (const DrawKey& key :
       {DrawKey{1, 2, 3}, {2, 2, 3}, {1, 3, 3}, {1, 2, 4}, {high, 2, 3}, {1, high, 3}})
    for (const RandomStream stream : {RandomStream::kBlock, RandomStream::kId})
      for (std::uint32_t index : {0U, 1U, 77U}) see(key, index, stream);
  EXPECT_EQ(seen.size(), 6u * 2 * 3);
}

TEST(DrawRace, ExponentialIsTheLogarithm) {
  const auto expected = [](std::uint64_t bits) {
    return -std::log1p(-(static_cast<long double>(bits >> 12) + 0.5L) * 0x1p-52L);
  };
  const auto check = [&](std::uint64_t bits) {
    const auto e = static_cast<double>(expected(bits));
    EXPECT_NEAR(exponential(bits) / e, 1, 1e-13) << std::hex << bits;
  };
  for (int shift = 0; shift < 64; ++shift) {
    const std::uint64_t one = std::uint64_t{1} << shift;
    check(one - 1), check(one), check(~one), check(~(one - 1)), check(one | one >> 1);
  }
  std::mt19937_64 random(3);
  for (int i = 0; i < 20000; ++i) check(random() >> random() % 53);
  EXPECT_EQ(exponential(0), 0x1p-53 + 0x1p-107);
  EXPECT_LT(exponential(~std::uint64_t{0}), 36.8);
}

}  // namespace
}  // namespace vitrine
