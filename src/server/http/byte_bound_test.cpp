#include "server/http/byte_bound.h"

#include <gtest/gtest.h>

#include <list>

namespace vitrine {
namespace {

constexpr std::int64_t kMost = std::int64_t{512} << 20, kPart = 1 << 20;

// How many parts a key gets that takes what it can.
int fill(ByteBound& bound, const std::string& tenant, std::list<ByteBound::Share>& held) {
  for (int n = 0;; ++n)
    if (!bound.set(held.emplace_back(), tenant, kPart, kMost)) return n;
}

TEST(ByteBound, WithoutKeysEverybodySharesTheWhole) {
  ByteBound bound;
  std::list<ByteBound::Share> held;
  EXPECT_EQ(fill(bound, "", held), 512);
  EXPECT_EQ(bound.total(), kMost);
  held.clear();
  EXPECT_EQ(bound.total(), 0);
}

TEST(ByteBound, GreedyKeysLeaveRoomForOneMore) {
  ByteBound bound;
  std::list<ByteBound::Share> held;
  EXPECT_NEAR(fill(bound, "a", held), 256, 1);
  EXPECT_NEAR(fill(bound, "b", held), 128, 1);
  EXPECT_NEAR(fill(bound, "c", held), 64, 1);
  ByteBound::Share polite;
  EXPECT_TRUE(bound.set(polite, "polite", 16 * kPart, kMost));
  EXPECT_FALSE(bound.would_fit("a", kPart, kMost));
  EXPECT_TRUE(bound.would_fit("polite", kPart, kMost));
}

TEST(ByteBound, AShareGrowsShrinksAndEnds) {
  ByteBound bound;
  {
    ByteBound::Share share;
    EXPECT_TRUE(bound.set(share, "a", 100, kMost));
    EXPECT_TRUE(bound.set(share, "a", 300, kMost));
    EXPECT_EQ(bound.total(), 300);
    EXPECT_TRUE(bound.set(share, "a", 50, kMost));
    EXPECT_EQ(bound.total(), 50);
    EXPECT_FALSE(bound.set(share, "a", kMost + 1, kMost));
    EXPECT_EQ(bound.total(), 0) << "a share that does not fit holds nothing";
    auto taken = bound.take("a", 2 * kMost);  // in any case
    EXPECT_EQ(bound.total(), 2 * kMost);
  }
  EXPECT_EQ(bound.total(), 0);
}

}  // namespace
}  // namespace vitrine
