#include <gtest/gtest.h>

#include "formats/hf_config.h"
#include "formats/hf_index.h"
#include "formats/test_files.h"

namespace vitrine {
namespace {

using test::Bytes;
using test::TempFolder;

const char* kConfig = R"({
  "architectures": ["LlamaForCausalLM"], "hidden_size": 64, "rms_norm_eps": 1e-5,
  "tie_word_embeddings": true, "head_dim": null, "eos_token_id": [7, 8], "bos_token_id": 3,
  "rope_parameters": {"rope_theta": 10000.0, "full_attention": {"rope_theta": 500000}},
  "layer_types": ["full", "sliding"], "mixed": [1, 2.5], "flags": [true, false], "none": [],
  "groups": [{"size": 1}, {"size": 2}, null], "grid": [[1, 2], [3]], "odd": [1, "x"],
  "text_config": {"hidden_size": 32}, "name": "caf\u00e9", "wide": 18446744073709551615
})";

Bytes shard_bytes(std::string_view tensor) {
  return test::safetensors(
      fmt::format(R"({{"{}":{{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}}})", tensor), 4);
}

auto open(const TempFolder& folder) { return ModelFile::open(folder.path()); }

TEST(HfFolder, KnowsHowEmbeddingsArePooled) {
  TempFolder folder;
  folder.write("config.json", kConfig);
  EXPECT_EQ((*open(folder))->generation().pooling, std::nullopt);
  std::filesystem::create_directory(folder.path("1_Pooling"));
  folder.write("1_Pooling/config.json", R"({"word_embedding_dimension": 64,
      "pooling_mode_mean_tokens": false, "pooling_mode_lasttoken": true})");
  EXPECT_EQ((*open(folder))->generation().pooling, "last");
  folder.write("1_Pooling/config.json", R"({"pooling_mode_mean_tokens": true})");
  EXPECT_EQ((*open(folder))->generation().pooling, "mean");
  folder.write("1_Pooling/config.json", R"({"pooling_mode_mean_tokens": "yes"})");
  auto broken = open(folder);
  ASSERT_FALSE(broken.ok());
  EXPECT_NE(broken.error().message.find("pooling_mode_mean_tokens"), std::string::npos);
}

TEST(HfFolder, OpensAWholeModel) {
  TempFolder folder;
  folder.write("config.json", kConfig)
      .write("generation_config.json", R"({"eos_token_id": 5, "temperature": 0.6, "top_k": 20,
             "top_p": 1, "min_p": 0.1, "typical_p": 0.9, "repetition_penalty": 1.05,
             "do_sample": true, "bos_token_id": 4})")
      .write("tokenizer.json", "{\"t\":1}")
      .write("tokenizer_config.json", "{\"c\":1}")
      .write("model.safetensors",
             test::safetensors(test::small_safetensors_header(), test::kSmallSafetensorsData));
  auto result = open(folder);
  ASSERT_TRUE(result.ok()) << result.error().message;
  const ModelFile& model = **result;
  EXPECT_EQ(model.kind(), FileKind::kHuggingFace);
  EXPECT_EQ(model.architecture(), "LlamaForCausalLM");
  EXPECT_EQ(model.tokenizer_json(), "{\"t\":1}");
  EXPECT_EQ(model.tokenizer_config_json(), "{\"c\":1}");
  ASSERT_NE(model.find("b"), nullptr);
  EXPECT_EQ(model.find("b")->data[0], std::byte{24});
  const GenerationDefaults& g = model.generation();
  EXPECT_EQ(g.eos_ids, std::vector<std::int32_t>{5});
  EXPECT_EQ(g.bos_id, 4);
  EXPECT_EQ(g.temperature, 0.6);
  EXPECT_EQ(g.top_k, 20);
  EXPECT_EQ(g.top_p, 1.0);
  EXPECT_EQ(g.min_p, 0.1);
  EXPECT_EQ(g.typical_p, 0.9);
  EXPECT_EQ(g.repetition_penalty, 1.05);
  EXPECT_EQ(g.do_sample, true);
  test::walk(model);
}

TEST(HfFolder, FlattensTheConfig) {
  TempFolder folder;
  folder.write("config.json", kConfig);
  auto result = open(folder);
  ASSERT_TRUE(result.ok()) << result.error().message;
  const Meta& meta = (*result)->meta();
  EXPECT_EQ(*meta.get_int("hidden_size"), 64);
  EXPECT_EQ(*meta.get_int("text_config.hidden_size"), 32);
  EXPECT_EQ(*meta.get_float("rope_parameters.rope_theta"), 10000.0);
  EXPECT_EQ(*meta.get_float("rope_parameters.full_attention.rope_theta"), 500000.0);
  EXPECT_TRUE(*meta.get_bool("tie_word_embeddings"));
  EXPECT_FALSE(meta.has("head_dim"));
  EXPECT_TRUE(meta.is_null("head_dim"));
  EXPECT_FALSE(meta.is_null("hidden_size"));
  EXPECT_EQ(*meta.get_int("head_dim", 9), 9);
  EXPECT_EQ(*meta.get_strings("layer_types"), (std::vector<std::string_view>{"full", "sliding"}));
  EXPECT_EQ(*meta.get_floats("mixed"), (std::vector<float>{1, 2.5}));
  EXPECT_EQ(*meta.get_floats("grid.0"), (std::vector<float>{1, 2}));
  EXPECT_EQ(*meta.get_ints("grid.1"), std::vector<std::int64_t>{3});
  EXPECT_EQ(*meta.get_bools("flags"), (std::vector<bool>{true, false}));
  EXPECT_TRUE(meta.get_strings("none")->empty());
  EXPECT_TRUE(meta.get_ints("none")->empty());
  EXPECT_EQ(*meta.get_int("groups.1.size"), 2);
  EXPECT_FALSE(meta.has("groups.2"));
  EXPECT_EQ(*meta.get_string("odd.1"), "x");
  EXPECT_EQ(*meta.get_string("name"), "caf\xC3\xA9");
  EXPECT_FALSE(meta.get_int("wide").ok());
  EXPECT_EQ((*result)->generation().eos_ids, (std::vector<std::int32_t>{7, 8}));
  EXPECT_EQ((*result)->generation().bos_id, 3);
}

TEST(HfFolder, TokenizerAlone) {
  TempFolder folder;
  folder.write("tokenizer.json", "{}");
  auto whole = open(folder);
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  EXPECT_EQ((*whole)->tokenizer_json(), "{}");
  EXPECT_EQ((*whole)->architecture(), "");
  auto file = ModelFile::open(folder.path("tokenizer.json"));
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ((*file)->tokenizer_json(), "{}");
  EXPECT_EQ((*file)->kind(), FileKind::kHuggingFace);
}

TEST(HfFolder, RefusesWhatIsNotAModel) {
  TempFolder folder;
  VT_EXPECT_REFUSED(open(folder), ErrorCode::kNotFound, "config.json", "tokenizer.json");
  folder.write("config.json", "{}").write("pytorch_model.bin", "x");
  VT_EXPECT_REFUSED(open(folder), ErrorCode::kUnsupported, "pytorch_model.bin", "safetensors");
  folder.write("tokenizer.json", "");
  VT_EXPECT_REFUSED(open(folder), ErrorCode::kMalformed, "tokenizer.json", "empty");
  VT_EXPECT_REFUSED(ModelFile::open(folder.path("absent.json")), ErrorCode::kNotFound, "absent");
}

TEST(HfFolder, RefusesABadConfig) {
  for (const char* text : {"", "[]", "1", "{", "{\"a\":1}}", "{\"a\":\"\xFF\"}", "{\"a\":NaN}"}) {
    TempFolder folder;
    folder.write("config.json", text);
    VT_EXPECT_REFUSED(open(folder), ErrorCode::kMalformed, "config.json");
  }
  auto refuse = [](const char* file, std::string_view text, const char* key) {
    TempFolder folder;
    folder.write("config.json", "{}").write(file, text);
    VT_EXPECT_REFUSED(open(folder), ErrorCode::kMalformed, key);
  };
  refuse("config.json", R"({"architectures": "LlamaForCausalLM"})", "'architectures'");
  refuse("config.json", R"({"architectures": [1]})", "'architectures'");
  refuse("config.json", R"({"a.b": 1, "a": {"b": 2}})", "'a.b'");
  refuse("config.json", R"({"eos_token_id": "2"})", "'eos_token_id'");
  refuse("generation_config.json", R"({"eos_token_id": [1, "2"]})", "'eos_token_id'");
  refuse("generation_config.json", R"({"eos_token_id": [1, null]})", "'eos_token_id'");
  refuse("generation_config.json", R"({"temperature": {"a": 1}})", "'temperature'");
  refuse("generation_config.json", R"({"do_sample": ["x", 1]})", "'do_sample'");
  refuse("config.json", R"({"architectures": [null, "A"]})", "'architectures'");
  refuse("generation_config.json", R"({"eos_token_id": 1.5})", "'eos_token_id'");
  refuse("generation_config.json", R"({"eos_token_id": [-1]})", "'eos_token_id'");
  refuse("generation_config.json", R"({"eos_token_id": 4294967296})", "'eos_token_id'");
  refuse("generation_config.json", R"({"temperature": "hot"})", "'temperature'");
  refuse("generation_config.json", R"({"top_k": 1.5})", "'top_k'");
  refuse("generation_config.json", R"({"do_sample": 1})", "'do_sample'");
}

TEST(HfFolder, ConfigBombsStaySmall) {
  std::deque<std::string> texts;
  auto refuse = [&](const std::string& text, ErrorCode code) {
    VT_EXPECT_REFUSED(parse_hf_config(text, "config.json", texts), code, "config.json");
  };
  refuse(std::string(3 << 20, ' '), ErrorCode::kTooLarge);
  refuse("{\"a\":" + std::string(500'000, '[') + std::string(500'000, ']') + "}",
         ErrorCode::kMalformed);
  // A long key over many children would be repeated for each of them.
  std::string many = "{\"" + std::string(400'000, 'k') + "\":{";
  for (int i = 0; i < 100'000; ++i) many += fmt::format("\"{}\":1,", i);
  many.back() = '}';
  refuse(many + "}", ErrorCode::kTooLarge);
  std::string wide = "{\"" + std::string(400, 'k') + "\":{";
  for (int i = 0; i < 100'000; ++i) wide += fmt::format("\"{}\":1,", i);
  wide.back() = '}';
  refuse(wide + "}", ErrorCode::kTooLarge);
  std::string nulls = "{\"a\":[1";
  for (int i = 0; i < 100'000; ++i) nulls += ",null";
  refuse(nulls + "]}", ErrorCode::kTooLarge);
  std::string numbers = "{\"a\":[0";
  for (int i = 0; i < 1'000'000; ++i) numbers += ",0";
  test::reset_peak();
  EXPECT_TRUE(parse_hf_config(numbers + "]}", "config.json", texts).ok());
  EXPECT_LT(test::peak_bytes(), std::size_t{64} << 20);
}

class HfShards : public testing::Test {
 protected:
  void write(std::string_view index) {
    folder_.write("model.safetensors.index.json", index);
    folder_.write("s1.safetensors", shard_bytes("a")).write("s2.safetensors", shard_bytes("b"));
  }
  TempFolder folder_;
};

TEST_F(HfShards, OpensAll) {
  write(R"({"metadata": {"total_size": 8, "x": [{"y": null}]},
            "weight_map": {"a": "s1.safetensors", "b": "s2.safetensors"}})");
  auto model = open(folder_);
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ((*model)->tensors().size(), 2u);
  EXPECT_NE((*model)->find("a"), nullptr);
  test::walk(**model);
}

TEST_F(HfShards, RefusesBadFileNames) {
  for (const char* name : {"../s1.safetensors", "../../etc/passwd", "/etc/passwd", "x/s1", "..",
                           ".", "", "s1\\u0000", "a\\\\b", "s1\\n"}) {
    write(fmt::format(R"({{"weight_map": {{"a": "{}"}}}})", name));
    VT_EXPECT_REFUSED(open(folder_), ErrorCode::kMalformed, "'a'", "plain file name");
  }
}

TEST_F(HfShards, RefusesMissingAndMisplaced) {
  write(R"({"weight_map": {"a": "s1.safetensors", "b": "s3.safetensors"}})");
  VT_EXPECT_REFUSED(open(folder_), ErrorCode::kNotFound, "s3.safetensors");
  write(R"({"weight_map": {"a": "s2.safetensors", "b": "s1.safetensors"}})");
  VT_EXPECT_REFUSED(open(folder_), ErrorCode::kMalformed, "'a'", "'s2.safetensors'");
  write(R"({"weight_map": {"a": "s1.safetensors", "c": "s2.safetensors"}})");
  VT_EXPECT_REFUSED(open(folder_), ErrorCode::kMalformed, "'c'", "'s2.safetensors'");
  write(R"({"weight_map": {"a": "s1.safetensors", "b": "s2.safetensors"}})");
  folder_.write("s2.safetensors", shard_bytes("a"));
  VT_EXPECT_REFUSED(open(folder_), ErrorCode::kMalformed, "'a'", "twice");
  folder_.write("s2.safetensors", "short");
  VT_EXPECT_REFUSED(open(folder_), ErrorCode::kMalformed, "s2.safetensors");
}

TEST_F(HfShards, RefusesABadIndex) {
  for (const char* text :
       {"{}", "[]", "1", "{\"weight_map\": []}", "{\"weight_map\": 1}", "{\"weight_map\": null}",
        R"({"weight_map": {"a": 1}})", R"({"weight_map": {"a": {"b": "s1"}}})",
        R"({"weight_map": {"a": ["s1"]}})", R"({"weight_map": {"": "s1"}})",
        R"({"weight_map": {"a": "s1", "a": "s1"}})", R"({"weight_map": {}, "weight_map": {}})",
        R"({"weight_map": {}} x)", R"({"weight_map": {})"}) {
    write(text);
    VT_EXPECT_REFUSED(open(folder_), ErrorCode::kMalformed, "index.json");
  }
}

TEST(HfIndex, BombsStaySmall) {
  std::string text = "{\"metadata\":[";
  for (int i = 0; i < 1'000'000; ++i) text += "0,";
  text += "0],\"weight_map\":{";
  for (int i = 0; i < 5000; ++i) text += fmt::format("\"{}\":\"f{}\",", i, i);
  text.back() = '}';
  VT_EXPECT_REFUSED(parse_shard_index(text + "}", "i"), ErrorCode::kTooLarge, "files");
  std::string deep = "{\"metadata\":" + std::string(100'000, '[');
  VT_EXPECT_REFUSED(parse_shard_index(deep, "i"), ErrorCode::kMalformed, "i:");
}

}  // namespace
}  // namespace vitrine
