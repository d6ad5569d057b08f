// Every architecture against HF transformers, on every backend and instruction set of this machine.
#include <algorithm>
#include <set>

#include "models/model.h"
#include "support/golden.h"

namespace vitrine::test {
namespace {

class GoldenModel : public ::testing::TestWithParam<std::string> {
 protected:
  Outcome run(const ModelPtr& model, EngineOptions options) const {
    options.context = golden_.context;
    return run_model(model, options, golden_.ids, static_cast<int>(golden_.greedy.size()));
  }

  const Golden golden_ = load_golden(GetParam());
  const ModelPtr model_ = open_model(golden_.folder);
};

TEST_P(GoldenModel, Ref) { EXPECT_TRUE(agrees(golden_, run(model_, ref_options()), 1e-3, 1e-2)); }

// The faster instruction sets multiply in bf16, which costs three digits.
TEST_P(GoldenModel, Cpu) {
  for (const std::string& isa : cpu_isas())
    for (DType kv : {DType::kF32, DType::kF16, DType::kBF16}) {
      SCOPED_TRACE(isa + ", KV type " + std::to_string(static_cast<int>(kv)));
      double tolerance = kv == DType::kBF16 ? 0.2 : 0.1;
      EXPECT_TRUE(agrees(golden_, run(model_, cpu_options(isa, kv)), tolerance, 0.05));
    }
}

TEST_P(GoldenModel, CpuWithF32Weights) {
  TempFolder folder;
  folder.write_json("config.json", json::parse(read_text(golden_.folder + "/config.json")));
  folder.write("model.safetensors", safetensors_image(read_weights(*model_), DType::kF32));
  ModelPtr wide = open_model(folder.path());
  for (const std::string& isa : cpu_isas()) {
    SCOPED_TRACE(isa);
    EXPECT_TRUE(agrees(golden_, run(wide, cpu_options(isa, DType::kF32)), 1e-3, 1e-2));
  }
}

TEST_P(GoldenModel, Cuda) {
  if (const char* reason = no_cuda()) GTEST_SKIP() << reason;
  for (DType kv : {DType::kF32, DType::kF16, DType::kBF16})
    for (bool deterministic : {false, true}) {
      SCOPED_TRACE(
          fmt::format("KV type {}, deterministic {}", static_cast<int>(kv), deterministic));
      double tolerance = kv == DType::kBF16 ? 0.2 : 0.1;
      EXPECT_TRUE(agrees(golden_, run(model_, cuda_options(kv, deterministic)), tolerance, 0.05));
    }
}

TEST_P(GoldenModel, DeterministicCudaGivesTheSameBitsHoweverCut) {
  if (const char* reason = no_cuda()) GTEST_SKIP() << reason;
  EngineOptions options = cuda_options(DType::kF16, true);
  Outcome whole = run(model_, options);
  for (int step_tokens : {1, 7}) {
    options.step_tokens = step_tokens;
    EXPECT_TRUE(same_bits(whole, run(model_, options))) << step_tokens;
  }
  options.commit_delay = 0;
  EXPECT_TRUE(same_bits(whole, run(model_, options))) << "commits at once";
}

// No bit depends on how the prompt is cut, on the threads, or on when steps are committed.
TEST_P(GoldenModel, SameBitsHoweverCut) {
  for (const std::string& isa : cpu_isas()) {
    SCOPED_TRACE(isa);
    EngineOptions options = cpu_options(isa, DType::kF16);
    Outcome whole = run(model_, options);
    for (int step_tokens : {1, 7}) {
      options.step_tokens = step_tokens;
      EXPECT_TRUE(same_bits(whole, run(model_, options))) << step_tokens;
    }
    options.threads = 3;
    EXPECT_TRUE(same_bits(whole, run(model_, options))) << "3 threads";
    options.commit_delay = 1;
    EXPECT_TRUE(same_bits(whole, run(model_, options))) << "delayed commit";
    options.page_size = 16;  // sums in another order
    EXPECT_LT(max_difference(whole.logits, run(model_, options).logits), 0.1) << "pages of 16";
  }
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, GoldenModel, ::testing::ValuesIn(golden_names()), test_name);

TEST(Golden, HasEveryArchitecture) {
  std::set<std::string> covered;
  for (const std::string& name : golden_names()) {
    auto arch = find_arch(*open_model(load_golden(name).folder));
    ASSERT_TRUE(arch.ok()) << arch.error().message;
    covered.insert((*arch)->name);
  }
  for (const Arch* arch : all_archs()) EXPECT_TRUE(covered.contains(arch->name)) << arch->name;
}

}  // namespace
}  // namespace vitrine::test
