// Every weight format in a whole model. The weights are random: what is compared is backends, and
// the format with the numbers it stands for.
#include <cmath>

#include "quant/format.h"
#include "support/allocation_count.h"
#include "support/golden.h"

namespace vitrine::test {
namespace {

// The k-quants come in blocks of 256.
constexpr std::uint32_t kDim = 256, kFfn = 512, kHeads = 8, kKvHeads = 4, kVocab = 80, kLayers = 2;
constexpr int kTokens = 6;

WeightMap random_llama() {
  WeightMap w;
  unsigned seed = 1;
  float scale = 1.2f / std::sqrt(static_cast<float>(kDim));
  auto matrix = [&](const std::string& name, std::int64_t rows, std::int64_t cols, float gain = 1) {
    w[name] = random_weights({rows, cols}, gain * scale, seed++);
  };
  auto norm = [&](const std::string& name) { w[name] = random_weights({kDim}, 0.2f, seed++, 1); };
  matrix("token_embd.weight", kVocab, kDim, 10);
  for (std::uint32_t i = 0; i < kLayers; ++i) {
    std::string layer = fmt::format("blk.{}.", i);
    norm(layer + "attn_norm.weight");
    norm(layer + "ffn_norm.weight");
    matrix(layer + "attn_q.weight", kDim, kDim);
    matrix(layer + "attn_k.weight", kDim / 2, kDim);
    matrix(layer + "attn_v.weight", kDim / 2, kDim);
    matrix(layer + "attn_output.weight", kDim, kDim);
    matrix(layer + "ffn_gate.weight", kFfn, kDim);
    matrix(layer + "ffn_up.weight", kFfn, kDim);
    matrix(layer + "ffn_down.weight", kDim, kFfn);
  }
  norm("output_norm.weight");
  matrix("output.weight", kVocab, kDim, 2);
  return w;
}

Bytes llama_image(const WeightMap& weights, DType matrix_type) {
  GgufImage out;
  out.add("general.architecture", "llama")
      .add("llama.block_count", kLayers)
      .add("llama.context_length", 64u)
      .add("llama.embedding_length", kDim)
      .add("llama.feed_forward_length", kFfn)
      .add("llama.attention.head_count", kHeads)
      .add("llama.attention.head_count_kv", kKvHeads)
      .add("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  for (const auto& [name, w] : weights)
    out.tensor(name, w, w.shape.size() == 1 ? DType::kF32 : matrix_type);
  return out.build();
}

class QuantizedModel : public ::testing::TestWithParam<std::string> {
 protected:
  Outcome run(const ModelPtr& model, EngineOptions options) const {
    options.step_tokens = 32;
    return run_model(model, options, ids_, kTokens);
  }
  const Format& format_ = *find_format(GetParam());
  const Bytes image_ = llama_image(random_llama(), format_.info.dtype);
  const ModelPtr model_ = open_image(image_);
  std::vector<std::int32_t> ids_{3, 79, 41, 5, 5, 60, 7, 22, 18, 33, 0, 71, 12, 9};
};

TEST_P(QuantizedModel, MeansItsDecodedNumbers) {
  Bytes decoded = llama_image(read_weights(*model_), DType::kF32);
  Outcome expected = run(open_image(decoded), ref_options());
  Outcome found = run(model_, ref_options());
  EXPECT_LT(max_difference(expected.logits, found.logits), 1e-4);
  EXPECT_EQ(expected.tokens, found.tokens);
}

// Activations are rounded: for bf16 weights to bf16 where the instructions are, for quantised ones
// to bf16 (AMX) or to int8 with a scale per 32, which is about as coarse as q8_0 itself is.
double allowed(const std::string& isa, const Format& format) {
  if (format.info.block > 1) return isa == "amx" ? 0.1 : 0.25;
  bool rounds = format.info.dtype == DType::kBF16 && (isa == "bf16" || isa == "amx");
  return rounds ? 0.1 : 1e-4;
}

TEST_P(QuantizedModel, IsTheSameOnCpu) {
  Outcome expected = run(model_, ref_options());
  for (const std::string& isa : cpu_isas()) {
    Outcome found = run(model_, cpu_options(isa, DType::kF32));
    EXPECT_LT(max_difference(expected.logits, found.logits), allowed(isa, format_)) << isa;
    EngineOptions alone = cpu_options(isa, DType::kF32);
    alone.threads = 1;
    EXPECT_TRUE(same_bits(found, run(model_, alone))) << isa;
  }
}

// Arrivals and ends may allocate; what is between them does not. On a device the first run records
// the steps that later ones replay, so the second is counted.
void expect_no_allocation(const ModelPtr& model, EngineOptions o,
                          const std::vector<std::int32_t>& ids) {
  o.sequences = 3, o.step_tokens = 16, o.context = 64;
  auto engine = std::move(Engine::create(model, o)).value();
  for (int run = 0; run < 2; ++run) {
    std::vector<std::shared_ptr<TokenStream>> streams;
    for (int i = 0; i < 3; ++i) {
      Request r;
      r.prompt = ids, r.max_tokens = 40, r.ignore_eos = true;
      r.cache_salt = std::to_string(run);
      r.logprobs = i == 0;
      r.sampling.set_seed(i);
      streams.push_back(std::move(engine->submit(std::move(r))).value());
    }
    engine->step();
    const std::size_t before = allocation_count();
    for (int i = 0; i < 30; ++i) EXPECT_TRUE(engine->step());
    if (run == 1) {
      EXPECT_EQ(allocation_count(), before) << engine->info().backend_description;
    }
    while (engine->step()) continue;
    for (auto& s : streams) EXPECT_EQ(s->wait().account.usage.completion_tokens, 40);
  }
}

TEST_P(QuantizedModel, StepsAllocateNothing) {
  for (const std::string& isa : cpu_isas())
    expect_no_allocation(model_, cpu_options(isa, DType::kF16), ids_);
  if (no_cuda() == nullptr) expect_no_allocation(model_, cuda_options(DType::kF16, false), ids_);
}

TEST_P(QuantizedModel, IsTheSameOnCuda) {
  if (const char* reason = no_cuda()) GTEST_SKIP() << reason;
  Outcome expected = run(model_, ref_options());
  for (bool deterministic : {false, true})
    EXPECT_LT(max_difference(expected.logits,
                             run(model_, cuda_options(DType::kF32, deterministic)).logits),
              0.1)
        << deterministic;
}

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const Format& f : all_formats()) names.emplace_back(f.info.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(All, QuantizedModel, ::testing::ValuesIn(format_names()),
                         [](const auto& info) { return info.param; });

// Coarser formats are worse, and none is far off: a decoder that read another format's bits would
// be.
TEST(Quantized, IsNearTheOriginal) {
  WeightMap weights = random_llama();
  std::vector<std::int32_t> ids{3, 79, 41, 5, 5, 60, 7, 22};
  Bytes original = llama_image(weights, DType::kF32);
  Outcome expected = run_model(open_image(original), ref_options(), ids, 0);
  for (const Format& f : all_formats()) {
    Bytes image = llama_image(weights, f.info.dtype);
    double bits = 8.0 * f.info.bytes / f.info.block;
    Outcome found = run_model(open_image(image), ref_options(), ids, 0);
    double limit = bits > 8 ? 0.25 : bits > 6 ? 0.8 : 3;
    EXPECT_LT(max_difference(expected.logits, found.logits), limit) << f.info.name;
  }
}

}  // namespace
}  // namespace vitrine::test
