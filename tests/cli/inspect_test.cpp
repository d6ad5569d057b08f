// vitrine inspect, and GGUF files on disk through the commands.
#include "cli/program.h"
#include "support/golden.h"
#include "support/to_gguf.h"

namespace vitrine::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kLlama = fixture("llama");

TEST(Inspect, TellsEverything) {
  TempFolder folder;
  folder.copy_from(kLlama);
  folder.write("tokenizer.json", tiny_tokenizer());
  json::object a = vitrine_json({"inspect", folder.path(), "--tensors"});
  EXPECT_EQ(a.at("architecture"), "LlamaForCausalLM");
  const json::object& model = a.at("model").as_object();
  EXPECT_EQ(model.at("arch"), "llama");
  EXPECT_EQ(model.at("layers").to_number<int>(), 2);
  EXPECT_EQ(model.at("dim").to_number<int>(), 48);
  EXPECT_EQ(model.at("heads").to_number<int>(), 6);
  EXPECT_EQ(model.at("vocab").to_number<int>(), 96);
  EXPECT_EQ(model.at("context").to_number<int>(), 128);
  EXPECT_EQ(a.at("weights").to_number<int>(), 33264);
  const json::array& types = a.at("tensor_types").as_array();
  ASSERT_EQ(types.size(), 1u);
  EXPECT_EQ(types[0].at("type"), "bf16");
  EXPECT_EQ(types[0].at("bytes").to_number<int>(), 66528);
  EXPECT_EQ(a.at("tensors").as_array().size(), 21u);
  EXPECT_EQ(a.at("tokenizer").at("vocab").to_number<int>(), 64);
  EXPECT_EQ(json::serialize(a.at("eos_ids")), "[2]");
}

TEST(Inspect, PlansForContextAndSequences) {
  // Two layers, two kv heads of sixteen numbers, K and V in f16.
  json::object a = vitrine_json({"inspect", fixture("llama-yarn")});
  EXPECT_EQ(a.at("memory").at("kv_bytes_per_token").to_number<int>(), 2 * 2 * 16 * 2 * 2);
  auto kv_bytes = [](std::vector<std::string> more) {
    std::vector<std::string> args{"inspect", kLlama};
    args.insert(args.end(), more.begin(), more.end());
    return vitrine_json(args).at("memory").at("kv_bytes").to_number<std::int64_t>();
  };
  std::int64_t half = kv_bytes({"--ctx", "64"});
  EXPECT_EQ(kv_bytes({"--ctx", "128"}), 2 * half);
  EXPECT_EQ(kv_bytes({"--ctx", "64", "--sequences", "3"}), 3 * half);
  EXPECT_EQ(kv_bytes({"--ctx", "64", "--kv-type", "f32"}), 2 * half);
}

TEST(Inspect, EveryFixture) {
  for (const std::string& name : golden_names()) {
    json::object a = vitrine_json({"inspect", fixture(name)});
    EXPECT_TRUE(a.at("memory").is_object()) << name;
    Exit e = vitrine({"inspect", fixture(name), "--tensors"});
    EXPECT_EQ(e.code, 0);
    EXPECT_THAT(e.out, HasSubstr("memory plan"));
    EXPECT_THAT(e.out, HasSubstr("at most: 256.0 MiB of compiled constraints"));
  }
}

TEST(Inspect, UnknownArchitecture) {
  TempFolder folder;
  GgufImage image;
  image.add("general.architecture", "foo").add("foo.block_count", 3u);
  image.tensor("bar.weight", random_weights({4, 64}, 1, 1), DType::kF16);
  folder.write("foo.gguf", image.build());
  std::string path = folder.path("foo.gguf");
  json::object a = vitrine_json({"inspect", path});
  EXPECT_EQ(a.at("architecture"), "foo");
  EXPECT_EQ(a.at("weights").to_number<int>(), 256);
  EXPECT_TRUE(a.at("model").is_null());
  EXPECT_THAT(std::string(a.at("not_runnable").as_string()), HasSubstr("foo"));
  EXPECT_EQ(vitrine({"inspect", path}).code, 0);
  expect_refused({"generate", path, "--ids", "1"}, {"foo", "llama", "qwen3", "gptneox"});
  expect_refused({"logits", path, "--ids", "1"}, {"foo", "llama"});
}

TEST(Inspect, FolderWithOnlyATokenizer) {
  TempFolder folder;
  folder.write("tokenizer.json", tiny_tokenizer());
  json::object a = vitrine_json({"inspect", folder.path()});
  EXPECT_TRUE(a.at("memory").is_null());
  EXPECT_EQ(a.at("tokenizer").at("kind"), "byte-level BPE");
  EXPECT_EQ(a.at("tokenizer").at("vocab").to_number<int>(), 64);
  Exit e = vitrine({"inspect", folder.path()});
  EXPECT_EQ(e.code, 0);
  EXPECT_THAT(e.out, Not(HasSubstr("memory plan")));
}

// A GGUF file on disk, through the same commands.
TEST(Gguf, FileFromDisk) {
  Golden golden = load_golden("llama");
  TempFolder folder;
  folder.copy_from(golden.folder);
  GgufImage image =
      to_gguf(folder.read_json("config.json"), read_weights(*open_model(kLlama)), DType::kBF16);
  folder.write("model.gguf", image.add("tokenizer.ggml.eos_token_id", 2u).build());
  json::object a = vitrine_json({"generate", folder.path("model.gguf"), "--ids", join(golden.ids),
                                 "--max-tokens", "16", "--temperature", "0", "--ignore-eos",
                                 "--backend", "ref", "--kv-type", "f32"});
  EXPECT_EQ(tokens_of(a), golden.greedy);
  json::object b = vitrine_json({"inspect", folder.path("model.gguf")});
  EXPECT_EQ(b.at("kind"), "gguf");
  EXPECT_EQ(b.at("architecture"), "llama");
  EXPECT_EQ(json::serialize(b.at("eos_ids")), "[2]");
}

}  // namespace
}  // namespace vitrine::test
