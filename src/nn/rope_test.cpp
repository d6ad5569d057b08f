#include "nn/rope.h"

#include <gmock/gmock.h>

#include "kernels/backend.h"
#include "nn/test_model.h"

namespace vitrine {
namespace {

using test::GgufModel;
using test::hf_model;
using testing::HasSubstr;

void expect_close(const std::vector<float>& found, const std::vector<float>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], wanted[i], 2e-6f * wanted[i]) << "pair " << i;
}

RopeConfig read(const ModelFile& file, int head_dim = 8, std::string_view layer_type = {}) {
  ConfigReader c(file);
  RopeConfig r = read_rope(c, head_dim, 4096, layer_type);
  EXPECT_TRUE(c.status().ok()) << c.status().error().message;
  return r;
}

std::string refusal(const ModelFile& file, int head_dim = 8) {
  ConfigReader c(file);
  read_rope(c, head_dim, 4096);
  return c.status().ok() ? "accepted" : c.status().error().message;
}

TEST(RopeFrequencies, PlainAndLinear) {
  RopeConfig c{.dims = 4, .base = 100};
  expect_close(rope_frequencies(c, 0).inv_freq, {1, 0.1f});
  c.type = "linear";
  c.factor = 4;
  expect_close(rope_frequencies(c, 0).inv_freq, {0.25f, 0.025f});
  EXPECT_EQ(rope_frequencies(c, 0).scale, 1);
}

// Frequencies 1, 0.01, 0.0001 have wavelengths 6.28, 628 and 62832: below 1000 / 4, between, and
// above 1000 / 1. The middle one: s = (1000 / 628.3185 - 1) / 3 = 0.197183, (1 - s) / 8 + s.
TEST(RopeFrequencies, Llama3KeepsShortWavesAndStretchesLongOnes) {
  RopeConfig c{.dims = 6, .base = 1e6f, .type = "llama3", .factor = 8, .original_context = 1000};
  expect_close(rope_frequencies(c, 0).inv_freq, {1, 0.01f * 0.297535f, 0.0001f / 8});
}

// The borders are 8 ln(4096 / (32 * 2 pi)) / (2 ln 10000) = 1.30902 and 2.81418: with whole numbers
// 1 and 3, so pair 2 is half way.
TEST(RopeFrequencies, YarnBlendsBetweenItsBorders) {
  RopeConfig c{.dims = 8, .type = "yarn", .factor = 4, .original_context = 4096};
  RopeFrequencies f = rope_frequencies(c, 0);
  expect_close(f.inv_freq, {1, 0.1f, 0.01f * (0.5f / 4 + 0.5f), 0.001f / 4});
  EXPECT_NEAR(f.scale, 1.138629f, 1e-6f);  // 0.1 ln 4 + 1
  c.truncate = false;
  expect_close(rope_frequencies(c, 0).inv_freq, {1, 0.1f, 0.00655697f, 0.001f / 4});
}

TEST(RopeFrequencies, YarnScaleMayBeGiven) {
  RopeConfig c{.dims = 8, .type = "yarn", .factor = 4, .original_context = 4096};
  c.mscale = 2;
  c.mscale_all_dim = 1;
  EXPECT_NEAR(rope_frequencies(c, 0).scale, 1.277259f / 1.138629f, 1e-6f);
  c.attention_factor = 1.5f;
  EXPECT_EQ(rope_frequencies(c, 0).scale, 1.5f);
}

TEST(RopeFrequencies, LongropeChoosesByTheServedContext) {
  RopeConfig c{.dims = 4,
               .base = 100,
               .type = "longrope",
               .factor = 8,
               .context = 512,
               .original_context = 64};
  c.short_factors = {1, 2};
  c.long_factors = {4, 5};
  expect_close(rope_frequencies(c, 64).inv_freq, {1, 0.05f});
  expect_close(rope_frequencies(c, 65).inv_freq, {0.25f, 0.02f});
  expect_close(rope_frequencies(c, 0).inv_freq, {0.25f, 0.02f});
  EXPECT_NEAR(rope_frequencies(c, 64).scale, 1.2247449f, 1e-6f);  // sqrt(1 + ln 8 / ln 64)
}

TEST(ReadRope, OlderAndNewerSpellingAgree) {
  auto older = hf_model(R"({"rope_theta": 500, "rope_scaling": {"type": "yarn", "factor": 2.0,
      "original_max_position_embeddings": 2048, "beta_fast": 16, "attention_factor": 1.25}})");
  auto newer = hf_model(R"({"rope_parameters": {"rope_theta": 500.0, "rope_type": "yarn",
      "factor": 2, "original_max_position_embeddings": 2048, "beta_fast": 16.0,
      "attention_factor": 1.25}})");
  for (const auto& file : {older.get(), newer.get()}) {
    RopeConfig r = read(*file);
    EXPECT_EQ(r.base, 500);
    EXPECT_EQ(r.type, "yarn");
    EXPECT_EQ(r.factor, 2);
    EXPECT_EQ(r.original_context, 2048);
    EXPECT_EQ(r.beta_fast, 16);
    EXPECT_EQ(r.beta_slow, 1);
    EXPECT_EQ(r.attention_factor, 1.25f);
  }
}

TEST(ReadRope, RotatedShareOfAHead) {
  EXPECT_EQ(read(*hf_model(R"({"rotary_pct": 0.25, "rotary_emb_base": 77})"), 16).dims, 4);
  EXPECT_EQ(read(*hf_model(R"({"rotary_pct": 0.25, "rotary_emb_base": 77})"), 16).base, 77);
  // 20 * 0.7 is 13.9999998 in floats.
  EXPECT_EQ(read(*hf_model(R"({"partial_rotary_factor": 0.7})"), 20).dims, 14);
  EXPECT_EQ(read(*GgufModel().u32("test.rope.dimension_count", 6).open()).dims, 6);
  EXPECT_THAT(refusal(*hf_model(R"({"partial_rotary_factor": 0.05})")), HasSubstr("at least 2"));
  EXPECT_THAT(refusal(*GgufModel().u32("test.rope.dimension_count", 10).open()),
              HasSubstr("test.rope.dimension_count: found 10"));
}

TEST(ReadRope, LayersWithAWindowHaveTheirOwnBase) {
  auto older = hf_model(R"({"rope_theta": 1e6, "rope_local_base_freq": 300,
      "rope_scaling": {"rope_type": "linear", "factor": 8}})");
  auto newer = hf_model(R"({"rope_parameters": {
      "full_attention": {"rope_type": "linear", "factor": 8, "rope_theta": 1e6},
      "sliding_attention": {"rope_type": "default", "rope_theta": 300}}})");
  auto gguf = GgufModel()
                  .f32("test.rope.freq_base", 1e6f)
                  .f32("test.rope.freq_base_swa", 300)
                  .f32("test.rope.scaling.factor", 8)
                  .open();
  for (const auto& file : {older.get(), newer.get(), gguf.get()}) {
    RopeConfig full = read(*file, 8, "full_attention");
    RopeConfig sliding = read(*file, 8, "sliding_attention");
    EXPECT_EQ(full.base, 1e6f);
    EXPECT_EQ(full.type, "linear");
    EXPECT_EQ(full.factor, 8);
    EXPECT_EQ(sliding.base, 300);
    EXPECT_EQ(sliding.type, "default");
  }
}

TEST(ReadRope, GgufScalings) {
  RopeConfig none = read(*GgufModel().open());
  expect_close(rope_frequencies(none, 0).inv_freq, {1, 0.1f, 0.01f, 0.001f});
  // A factor without a type, in either name, is linear.
  for (const char* key : {"test.rope.scaling.factor", "test.rope.scale_linear"}) {
    RopeConfig linear = read(*GgufModel().f32(key, 2).open());
    expect_close(rope_frequencies(linear, 0).inv_freq, {0.5f, 0.05f, 0.005f, 0.0005f});
  }
  auto yarn = [] {
    GgufModel m;
    m.string("test.rope.scaling.type", "yarn").f32("test.rope.scaling.factor", 4);
    return m;
  };
  EXPECT_NEAR(rope_frequencies(read(*yarn().open()), 0).scale, 1.138629f, 1e-6f);
  auto in_place = yarn().f32("test.rope.scaling.yarn_attn_factor", 1.5f).open();
  EXPECT_EQ(rope_frequencies(read(*in_place), 0).scale, 1.5f);
  auto on_top = yarn().f32("test.rope.scaling.attn_factor", 1.5f).open();
  EXPECT_NEAR(rope_frequencies(read(*on_top), 0).scale, 1.5f * 1.138629f, 1e-6f);
}

TEST(ReadRope, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(refusal(*hf_model(R"({"rope_scaling": {"type": "dynamic", "factor": 2}})")),
              HasSubstr("'dynamic' is not known"));
  EXPECT_THAT(refusal(*GgufModel().string("test.rope.scaling.type", "odd").open()),
              HasSubstr("'odd' is not known"));
  EXPECT_THAT(refusal(*hf_model(R"({"rope_scaling": {"type": "linear", "factor": -1}})")),
              HasSubstr("rope_scaling.factor: found -1"));
  EXPECT_THAT(refusal(*hf_model(R"({"rope_scaling": {"type": "longrope",
                  "short_factor": [1, 1, 1, 1], "long_factor": [1, 1, 1]}})")),
              HasSubstr("long_factor: found 3 values, must be 4"));
  EXPECT_THAT(refusal(*hf_model(R"({"rope_scaling": {"type": "su",
                  "short_factor": [1, 0, 1, 1], "long_factor": [1, 1, 1, 1]}})")),
              HasSubstr("short_factor"));
}

// Frequencies as the backend sees them, by a table at position 1 with one row: cos of them.
std::vector<float> cosines(const ModelFile& file, int context) {
  auto backend = create_backend("ref", {}).value();
  ConfigReader c(file);
  WeightLoader w(file, *backend);
  Rope rope(w, read_rope(c, 8, 512), context, 1);
  EXPECT_TRUE(w.status().ok()) << w.status().error().message;
  std::int32_t position = 1;
  Tensor table = rope(*backend, {&position, DType::kI32, {1}});
  std::vector<float> out;
  for (int i = 0; i < 4; ++i) out.push_back(table.f32()[2 * i]);
  return out;
}

TEST(Rope, ReadsFactorsThatGgufKeepsAsTensors) {
  auto llama3 = GgufModel().tensor({"rope_freqs.weight", {4}, {1, 2, 4, 8}}).open();
  auto cos = [](float f) { return std::cos(f); };
  expect_close(cosines(*llama3, 512), {cos(1), cos(0.05f), cos(0.0025f), cos(0.000125f)});
  auto longrope = GgufModel()
                      .u32("test.rope.scaling.original_context_length", 64)
                      .f32("test.rope.scaling.attn_factor", 2)
                      .tensor({"rope_factors_short.weight", {4}, {1, 1, 1, 1}})
                      .tensor({"rope_factors_long.weight", {4}, {2, 2, 2, 2}})
                      .open();
  expect_close(cosines(*longrope, 64),
               {2 * cos(1), 2 * cos(0.1f), 2 * cos(0.01f), 2 * cos(0.001f)});
  expect_close(cosines(*longrope, 512),
               {2 * cos(0.5f), 2 * cos(0.05f), 2 * cos(0.005f), 2 * cos(0.0005f)});
}

TEST(Rope, RefusesFactorsThatAreNotPositive) {
  auto file = GgufModel().tensor({"rope_freqs.weight", {4}, {1, 0, 4, 8}}).open();
  auto backend = create_backend("ref", {}).value();
  ConfigReader c(*file);
  WeightLoader w(*file, *backend);
  Rope rope(w, read_rope(c, 8, 512), 0, 1);
  ASSERT_FALSE(w.status().ok());
  EXPECT_THAT(w.status().error().message, HasSubstr("rope_freqs.weight"));
}

}  // namespace
}  // namespace vitrine
