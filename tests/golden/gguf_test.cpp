// The same model as a folder and as a GGUF file gives the same bits.
#include <algorithm>

#include "support/golden.h"
#include "support/to_gguf.h"

namespace vitrine::test {
namespace {

constexpr int kTokens = 4;

std::vector<std::string> convertible() {
  std::vector<std::string> names = golden_names();
  std::erase_if(names, [](const std::string& name) { return name == "opt" || name == "xglm"; });
  return names;
}

// What no GGUF key carries takes the value that a reader of the GGUF file assumes.
json::object without_what_gguf_lacks(json::object config) {
  if (config.contains("query_pre_attn_scalar"))
    config["query_pre_attn_scalar"] = json::value(config["head_dim"]);
  if (config["model_type"] == "mistral") config["sliding_window"] = nullptr;
  if (config["model_type"] == "qwen2") config["use_sliding_window"] = false;
  return config;
}

class GgufModel : public ::testing::TestWithParam<std::string> {
 protected:
  GgufModel() {
    folder_.copy_from(golden_.folder);
    config_ = without_what_gguf_lacks(folder_.read_json("config.json"));
    folder_.write_json("config.json", config_);
    model_ = open_model(folder_.path());
  }
  Outcome run(const ModelPtr& model, EngineOptions options) const {
    options.context = golden_.context;
    return run_model(model, options, golden_.ids, kTokens);
  }
  // These write frequencies, or what they are multiplied with, as numbers rounded once more.
  bool rounds() const {
    return GetParam() == "llama3-tied" || GetParam().starts_with("phi3-longrope");
  }
  void expect_same(const Outcome& a, const Outcome& b) const {
    if (rounds())
      EXPECT_LT(max_difference(a.logits, b.logits), 1e-4);
    else
      EXPECT_TRUE(same_bits(a, b));
  }

  const Golden golden_ = load_golden(GetParam());
  TempFolder folder_;
  json::object config_;
  ModelPtr model_;
};

TEST_P(GgufModel, GivesTheFoldersLogits) {
  WeightMap weights = read_weights(*model_);
  Outcome expected = run(model_, ref_options());
  for (DType type : {DType::kF32, DType::kBF16}) {
    SCOPED_TRACE("type " + std::to_string(static_cast<int>(type)));
    Bytes image = to_gguf(config_, weights, type).build();
    expect_same(expected, run(open_image(image), ref_options()));
  }
}

TEST_P(GgufModel, GivesTheFoldersLogitsOnCpu) {
  Bytes image = to_gguf(config_, read_weights(*model_), DType::kBF16).build();
  ModelPtr converted = open_image(image);
  for (const std::string& isa : cpu_isas()) {
    // A frequency that is rounded otherwise may tip an activation over to the next bf16.
    if (rounds() && (isa == "amx" || isa == "bf16")) continue;
    SCOPED_TRACE(isa);
    EngineOptions options = cpu_options(isa, DType::kF32);
    expect_same(run(model_, options), run(converted, options));
  }
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, GgufModel, ::testing::ValuesIn(convertible()), test_name);

// Converters drop Mistral's window; a file that has it is served with it.
TEST(Gguf, HonoursAWindowOfLlama) {
  Golden golden = load_golden("mistral");
  ModelPtr model = open_model(golden.folder);
  TempFolder folder;
  folder.copy_from(golden.folder);
  Bytes image = to_gguf(folder.read_json("config.json"), read_weights(*model), DType::kBF16)
                    .add("llama.attention.sliding_window", 11u)
                    .build();
  EXPECT_TRUE(same_bits(run_model(model, ref_options(), golden.ids, kTokens),
                        run_model(open_image(image), ref_options(), golden.ids, kTokens)));
}

TEST(Gguf, TakesQkvInOneMatrix) {
  Golden golden = load_golden("llama-linear");
  ModelPtr model = open_model(golden.folder);
  TempFolder folder;
  folder.copy_from(golden.folder);
  json::object config = folder.read_json("config.json");
  WeightMap split = read_weights(*model);
  Bytes image = to_gguf(config, split, DType::kBF16).build();
  ModelPtr converted = open_image(image);
  WeightMap fused = read_weights(*converted);
  for (int i = 0; i < 2; ++i)
    for (const char* end : {"weight", "bias"}) {
      auto name = [&](const char* part) { return fmt::format("blk.{}.attn_{}.{}", i, part, end); };
      Weights all = fused.at(name("q"));
      for (const char* part : {"k", "v"}) {
        const Weights& more = fused.at(name(part));
        all.shape[0] += more.shape[0];
        all.values.insert(all.values.end(), more.values.begin(), more.values.end());
      }
      for (const char* part : {"q", "k", "v"}) fused.erase(name(part));
      fused[name("qkv")] = all;
    }
  GgufImage out = to_gguf(config, {}, DType::kBF16);
  for (const auto& [name, w] : fused)
    out.tensor(name, w, w.shape.size() == 1 ? DType::kF32 : DType::kBF16);
  Bytes fused_image = out.build();
  EXPECT_TRUE(same_bits(run_model(model, ref_options(), golden.ids, kTokens),
                        run_model(open_image(fused_image), ref_options(), golden.ids, kTokens)));
}

}  // namespace
}  // namespace vitrine::test
