#include "nn/decoder_config.h"

#include <gmock/gmock.h>

#include "nn/test_model.h"

namespace vitrine {
namespace {

using test::GgufModel;
using test::hf_model;
using testing::ElementsAre;
using testing::HasSubstr;

std::unique_ptr<ModelFile> with_config(const std::string& more) {
  return hf_model(R"({"num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 4,
      "intermediate_size": 16, "max_position_embeddings": 32, "rms_norm_eps": 1e-6)" +
                      more + "}",
                  {{"model.embed_tokens.weight", {10, 8}}});
}

std::string refusal(const ModelFile& file, const DecoderKeys& keys = {}) {
  ConfigReader c(file);
  read_decoder_config(c, keys);
  return c.status().ok() ? "accepted" : c.status().error().message;
}

TEST(DecoderConfig, FillsInWhatFilesMayLeaveOut) {
  auto file = with_config("");
  ConfigReader c(*file);
  DecoderConfig d = read_decoder_config(c);
  ASSERT_TRUE(c.status().ok()) << c.status().error().message;
  EXPECT_EQ(d.vocab, 10);
  EXPECT_EQ(d.kv_heads, 4);
  EXPECT_EQ(d.head_dim, 2);
  EXPECT_EQ(d.eps, 1e-6f);
}

TEST(DecoderConfig, ReadsGgufKeysOfItsArchitecture) {
  auto file = GgufModel()
                  .u32("test.block_count", 3)
                  .u32("test.embedding_length", 8)
                  .u32("test.attention.head_count", 2)
                  .u32("test.attention.head_count_kv", 1)
                  .u32("test.attention.key_length", 6)
                  .u32("test.feed_forward_length", 16)
                  .u32("test.context_length", 32)
                  .f32("test.attention.layer_norm_rms_epsilon", 0.5f)
                  .tensor({"token_embd.weight", {10, 8}})
                  .open();
  ConfigReader c(*file);
  DecoderConfig d = read_decoder_config(c);
  ASSERT_TRUE(c.status().ok()) << c.status().error().message;
  EXPECT_EQ(d.layers, 3);
  EXPECT_EQ(d.kv_heads, 1);
  EXPECT_EQ(d.head_dim, 6);
  EXPECT_EQ(d.q_dim(), 12);
  EXPECT_EQ(d.eps, 0.5f);
}

TEST(DecoderConfig, FindsTheTextModelOfAMultimodalOne) {
  auto file = hf_model(R"({"num_hidden_layers": 99, "text_config": {"num_hidden_layers": 2,
      "hidden_size": 8, "num_attention_heads": 4, "num_key_value_heads": null,
      "intermediate_size": 16, "max_position_embeddings": 32, "rms_norm_eps": 1e-6}})",
                       {{"language_model.model.embed_tokens.weight", {10, 8}}});
  ConfigReader c(*file);
  DecoderConfig d = read_decoder_config(c);
  ASSERT_TRUE(c.status().ok()) << c.status().error().message;
  EXPECT_EQ(d.layers, 2);
  EXPECT_EQ(d.vocab, 10);
}

TEST(DecoderConfig, RefusalsNameKeyAndRange) {
  EXPECT_THAT(refusal(*hf_model("{}")), HasSubstr("num_hidden_layers"));
  EXPECT_THAT(refusal(*with_config(R"(, "num_key_value_heads": 0)")),
              HasSubstr("num_key_value_heads: found 0, allowed 1 to 1024"));
  EXPECT_THAT(refusal(*with_config(R"(, "num_key_value_heads": 3)")), HasSubstr("3 kv heads"));
  EXPECT_THAT(refusal(*with_config(R"(, "head_dim": 5000)")), HasSubstr("head_dim: found 5000"));
  EXPECT_THAT(refusal(*with_config(R"(, "head_dim": "x")")), HasSubstr("head_dim"));
  EXPECT_THAT(refusal(*hf_model("{}"), {.hf_missing = {.layers = 1}}), HasSubstr("hidden_size"));
}

TEST(DecoderConfig, RefusesWhatIsNotComputed) {
  EXPECT_THAT(refusal(*with_config(R"(, "num_local_experts": 8)")), HasSubstr("experts"));
  EXPECT_THAT(refusal(*with_config(R"(, "num_experts": 8)")), HasSubstr("experts"));
  EXPECT_THAT(refusal(*with_config(R"(, "quantization_config": {"quant_method": "gptq"})")),
              HasSubstr("'gptq'"));
  EXPECT_EQ(refusal(*with_config(R"(, "num_local_experts": 0)")), "accepted");
}

TEST(DecoderConfig, EmbeddingMustBeThere) {
  auto file = hf_model(R"({"num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 4,
      "intermediate_size": 16, "max_position_embeddings": 32, "rms_norm_eps": 1e-6})",
                       {{"something.else", {10, 8}}});
  EXPECT_THAT(refusal(*file), HasSubstr("model.embed_tokens.weight"));
}

TEST(ReadActivation, ByNameOrRefusedByName) {
  auto file = hf_model(R"({"a": "gelu", "b": "gelu_new", "c": "quick_gelu"})");
  ConfigReader c(*file);
  EXPECT_EQ(read_activation(c, "a", Activation::kSilu), Activation::kGelu);
  EXPECT_EQ(read_activation(c, "b", Activation::kSilu), Activation::kGeluTanh);
  EXPECT_EQ(read_activation(c, "missing", Activation::kRelu), Activation::kRelu);
  EXPECT_TRUE(c.status().ok());
  read_activation(c, "c", Activation::kSilu);
  ASSERT_FALSE(c.status().ok());
  EXPECT_THAT(c.status().error().message, HasSubstr("'quick_gelu'"));
}

std::vector<int> windows(const ModelFile& file) {
  ConfigReader c(file);
  auto out = read_windows(c, 4, 16, [](int i) { return i == 0; });
  EXPECT_TRUE(c.status().ok()) << c.status().error().message;
  return out;
}

TEST(ReadWindows, ByListByPeriodOrByRule) {
  EXPECT_THAT(windows(*hf_model("{}")), ElementsAre(16, 0, 0, 0));
  EXPECT_THAT(windows(*hf_model(R"({"sliding_window_pattern": 3})")), ElementsAre(16, 16, 0, 16));
  EXPECT_THAT(windows(*hf_model(R"({"_sliding_window_pattern": 2})")), ElementsAre(16, 0, 16, 0));
  EXPECT_THAT(windows(*hf_model(R"({"sliding_window_pattern": 3, "layer_types":
                  ["full_attention", "sliding_attention", "full_attention", "full_attention"]})")),
              ElementsAre(0, 16, 0, 0));
  const char* key = "test.attention.sliding_window_pattern";
  EXPECT_THAT(windows(*GgufModel().u32(key, 2).open()), ElementsAre(16, 0, 16, 0));
  EXPECT_THAT(windows(*GgufModel().flags(key, {false, false, true, true}).open()),
              ElementsAre(0, 0, 16, 16));
}

TEST(ReadWindows, RefusesOtherKindsAndOtherCounts) {
  auto kind = hf_model(R"({"layer_types": ["chunked_attention", "full_attention",
                           "full_attention", "full_attention"]})");
  auto count = hf_model(R"({"layer_types": ["full_attention"]})");
  ConfigReader a(*kind), b(*count);
  read_windows(a, 4, 16, [](int) { return true; });
  EXPECT_THAT(a.status().error().message, HasSubstr("'chunked_attention'"));
  EXPECT_EQ(read_windows(b, 4, 16, [](int) { return true; }).size(), 4u);
  EXPECT_THAT(b.status().error().message, HasSubstr("1 layers, there are 4"));
}

TEST(ConfigReader, TellsNullFromMissing) {
  auto file = hf_model(R"({"off": null, "on": 5})");
  ConfigReader c(*file);
  EXPECT_EQ(c.nullable_integer_or({"", "off"}, 1, 10, 7), 0);
  EXPECT_EQ(c.nullable_integer_or({"", "on"}, 1, 10, 7), 5);
  EXPECT_EQ(c.nullable_integer_or({"", "missing"}, 1, 10, 7), 7);
  EXPECT_EQ(c.integer_or({"", "off"}, 1, 10, 7), 7);
}

TEST(ConfigReader, KeepsTheFirstError) {
  auto file = hf_model(R"({"flag": true, "big": 100, "real": 1e300})");
  ConfigReader c(*file);
  c.only({"", "flag"}, true);
  c.only({"", "missing"}, false);
  c.none({"", "missing"}, "things are");
  EXPECT_TRUE(c.status().ok());
  c.only({"", "flag"}, false);
  EXPECT_EQ(c.integer({"", "big"}, 1, 9), 1);
  EXPECT_EQ(c.number({"", "real"}, 2, 9), 2);
  EXPECT_EQ(c.status().error().message, "flag: found true, only false is supported");
}

}  // namespace
}  // namespace vitrine
