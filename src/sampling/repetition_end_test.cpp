#include "sampling/repetition_end.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace vitrine {
namespace {

using Ids = std::vector<std::int32_t>;

TEST(RepetitionEnd, EndsWithAPatternSoOften) {
  const RepetitionEnd end{.least = 1, .most = 3, .count = 3};
  EXPECT_TRUE(end.found(Ids{9, 4, 4, 4}));
  EXPECT_FALSE(end.found(Ids{4, 4, 4, 9}));
  EXPECT_TRUE(end.found(Ids{1, 2, 3, 1, 2, 3, 1, 2, 3}));
  EXPECT_FALSE(end.found(Ids{2, 3, 1, 2, 3, 1, 2, 3}));
  EXPECT_FALSE(end.found({}));
  const RepetitionEnd longer{.least = 2, .most = 2, .count = 2};
  EXPECT_FALSE(longer.found(Ids{4, 4, 4})) << "two patterns of two are four tokens";
  EXPECT_TRUE(longer.found(Ids{4, 4, 4, 4}));
}

TEST(RepetitionEnd, AgreesWithAPlainVersion) {
  std::mt19937 random(2);
  for (int round = 0; round < 2000; ++round) {
    Ids output(random() % 24);
    for (auto& id : output) id = static_cast<std::int32_t>(random() % 2);
    RepetitionEnd end{.least = 1 + static_cast<int>(random() % 3), .most = 0, .count = 2};
    end.most = end.least + static_cast<int>(random() % 4), end.count += random() % 3;
    bool expected = false;
    for (int size = end.least; size <= end.most; ++size) {
      Ids pattern, repeated;
      if (size * end.count > static_cast<int>(output.size())) continue;
      pattern.assign(output.end() - size, output.end());
      for (int i = 0; i < end.count; ++i)
        repeated.insert(repeated.end(), pattern.begin(), pattern.end());
      expected |= std::equal(repeated.rbegin(), repeated.rend(), output.rbegin());
    }
    EXPECT_EQ(end.found(output), expected);
  }
}

TEST(RepetitionEnd, RefusesWhatMakesNoSense) {
  EXPECT_TRUE((RepetitionEnd{1, 256, 64}.check().ok()));
  EXPECT_FALSE((RepetitionEnd{0, 4, 2}.check().ok()));
  EXPECT_FALSE((RepetitionEnd{5, 4, 2}.check().ok()));
  EXPECT_FALSE((RepetitionEnd{1, 257, 2}.check().ok()));
  EXPECT_EQ((RepetitionEnd{1, 4, 1}.check().error().message),
            "repetition_detection: found a count of 1, allowed 2 to 64");
}

}  // namespace
}  // namespace vitrine
