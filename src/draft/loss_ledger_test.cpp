#include "draft/loss_ledger.h"

#include <gtest/gtest.h>

#include <vector>

namespace vitrine {
namespace {

TEST(LossLedger, TurnsOffAboveTwoPercent) {
  LossLedger ledger;
  EXPECT_TRUE(ledger.on());
  EXPECT_DOUBLE_EQ(ledger.room(100), 80);
  // 32 steps of 100 that are taken as run, and this one: 2 % of them are 67.
  ledger.step(150, 50, 100);
  EXPECT_TRUE(ledger.on());
  EXPECT_NEAR(ledger.room(100), 0.025 * 3350 - 50, 0.1);
  ledger.step(115, 15, 100);
  EXPECT_TRUE(ledger.on());
  ledger.step(150, 50, 100);
  EXPECT_FALSE(ledger.on());
  EXPECT_EQ(ledger.times_off(), 1u);
  EXPECT_EQ(ledger.steps_to_probe(), 64);
}

TEST(LossLedger, GainsMakeUpForEarlierLossesOnly) {
  LossLedger ledger;
  for (int i = 0; i < 50; ++i) ledger.step(100, -80, 100);
  ledger.step(400, 250, 100);
  EXPECT_FALSE(ledger.on()) << "no credit";
  LossLedger other;
  for (int i = 0; i < 50; ++i) other.step(150, 50, 100), other.step(20, -50, 100);
  EXPECT_TRUE(other.on());
}

TEST(LossLedger, WaitsTwiceAsLongEachTime) {
  LossLedger ledger;
  std::vector<int> waits;
  double lost = 0, time = 0;
  for (int i = 0; i < 40'000; ++i) {
    if (!ledger.on()) {
      int wait = 0;
      for (; !ledger.on(); ++wait, time += 100) ledger.step(100, 0, 100);
      waits.push_back(wait);
    }
    ledger.step(150, 50, 100);
    time += 150, lost += 50;
  }
  ASSERT_GE(waits.size(), 9u);
  for (int i = 0; i < 9; ++i) EXPECT_EQ(waits[i], std::min(64 << i, 4096));
  EXPECT_LT(lost, 0.015 * time);
}

TEST(LossLedger, TrustsAProbeThatWins) {
  LossLedger ledger;
  const auto lose = [&] {
    while (ledger.on()) ledger.step(200, 100, 100);
  };
  const auto wait = [&] {
    while (!ledger.on()) ledger.step(100, 0, 100);
  };
  lose(), wait(), lose(), wait(), lose();
  EXPECT_EQ(ledger.steps_to_probe(), 256);
  wait();
  for (int i = 0; i < 64; ++i) ledger.step(60, -40, 100);
  lose();
  EXPECT_EQ(ledger.steps_to_probe(), 64);
}

// What the sources take is lost too, if nothing comes of it; a little of that is no reason to stop.
TEST(LossLedger, AProbeEndsWhenItDoesNotPay) {
  LossLedger costly, cheap;
  const auto probe = [](LossLedger& ledger, double drafting) {
    while (ledger.on()) ledger.step(200, 100, 100);
    for (int i = 0; i < 64; ++i) ledger.step(1000, 0, 1000);
    int steps = 0;
    for (; ledger.on() && steps < 1000; ++steps) ledger.step(100, drafting, 100);
    return steps;
  };
  EXPECT_EQ(probe(costly, 2), 64);
  EXPECT_EQ(probe(cheap, 0.5), 1000);
}

}  // namespace
}  // namespace vitrine
