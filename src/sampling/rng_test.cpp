#include "sampling/rng.h"

#include <gtest/gtest.h>

namespace vitrine {
namespace {

TEST(Rng, DrawnSeedsDiffer) { EXPECT_NE(draw_seed(), draw_seed()); }

}  // namespace
}  // namespace vitrine
