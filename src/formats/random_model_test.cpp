#include "formats/random_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "quant/format.h"

namespace vitrine {
namespace {

TEST(RandomModel, HasTheTensorsOfItsShape) {
  auto made = random_model("qwen3-0.6b:q4_k_m");
  ASSERT_TRUE(made.ok()) << made.error().message;
  const ModelFile& file = **made;
  EXPECT_EQ(file.architecture(), "qwen3");
  EXPECT_EQ(*file.meta().get_int("qwen3.block_count"), 28);
  ASSERT_NE(file.find("blk.27.ffn_down.weight"), nullptr);
  EXPECT_EQ(file.find("blk.27.ffn_down.weight")->shape, (Shape{1024, 3072}));
  EXPECT_EQ(file.find("blk.0.attn_q_norm.weight")->shape, (Shape{128}));
  EXPECT_EQ(file.find("output.weight"), nullptr);
  // The mix: v and down of some layers have more bits.
  std::set<DType> down;
  for (int i = 0; i < 28; ++i)
    down.insert(file.find(fmt::format("blk.{}.ffn_down.weight", i))->dtype);
  EXPECT_EQ(down.size(), 2U);
}

TEST(RandomModel, HasRandomWeightsOfASensibleSize) {
  auto made = random_model("qwen3-0.6b:q4_0");
  ASSERT_TRUE(made.ok()) << made.error().message;
  const TensorInfo& t = *(*made)->find("blk.3.attn_q.weight");
  const Format& f = *find_format(t.dtype);
  std::vector<float> a(1024), b(1024);
  std::int64_t stride = format_bytes(f.info, 1024);
  f.decode(t.data.data(), 1024 / f.info.block, a.data());
  f.decode(t.data.data() + stride, 1024 / f.info.block, b.data());
  EXPECT_NE(a, b);
  double squares = 0;
  for (float x : a) squares += x * x;
  EXPECT_NEAR(squares, 1, 0.2);
}

TEST(RandomModel, RefusesWhatItDoesNotKnow) {
  for (const char* spec : {"", "llama-8b", "llama-9b:q4_0", "llama-8b:q9", ":", "llama-8b:q4_0:"}) {
    auto made = random_model(spec);
    ASSERT_FALSE(made.ok()) << spec;
    EXPECT_NE(made.error().message.find("llama-8b"), std::string::npos);
    EXPECT_NE(made.error().message.find("q4_k_m"), std::string::npos);
  }
}

}  // namespace
}  // namespace vitrine
