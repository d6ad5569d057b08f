#include "sampling/rng.h"

#include <gtest/gtest.h>

#include <set>

namespace vitrine {
namespace {

// The vectors published with the algorithm.
TEST(Rng, PhiloxKnownAnswers) {
  EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(
      philox4x32_10({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
      (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Rng, EveryPartOfTheKeyCounts) {
  const std::uint64_t high = std::uint64_t{1} << 40;
  const std::set<std::uint64_t> seen = {random_bits(1, 2, 3),    random_bits(2, 2, 3),
                                        random_bits(1, 3, 3),    random_bits(1, 2, 4),
                                        random_bits(high, 2, 3), random_bits(1, 2, high)};
  EXPECT_EQ(seen.size(), 6u);
  EXPECT_EQ(random_bits(0, 0, 0), 0xe169c58d6627e8d5u);
}

TEST(Rng, UniformIsBelowOne) {
  EXPECT_EQ(uniform(0), 0.0);
  EXPECT_LT(uniform(~std::uint64_t{0}), 1.0);
  EXPECT_EQ(uniform(std::uint64_t{1} << 63), 0.5);
}

TEST(Rng, DrawnSeedsDiffer) { EXPECT_NE(draw_seed(), draw_seed()); }

}  // namespace
}  // namespace vitrine
