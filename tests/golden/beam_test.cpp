// Beam search against HF transformers' generate(): two of the models and their cases (`ends`: so many tokens from 3 on
// end a text). tools/check_beams.py runs more of them through the program.
#include <cmath>

#include "support/golden.h"

namespace vitrine::test {
namespace {

struct Scored {
  std::vector<std::int32_t> tokens;
  double score = 0;
};

std::vector<Scored> search(Engine& engine, const json::object& c, std::vector<std::int32_t> ids) {
  Request r;
  ids.resize(static_cast<std::size_t>(c.at("prompt").as_int64()));
  r.prompt = std::move(ids);
  r.max_tokens = static_cast<int>(c.at("max_tokens").as_int64());
  r.ignore_eos = true;
  for (int i = 0; i < c.at("ends").as_int64(); ++i) r.stop_token_ids.push_back(3 + i);
  const json::value& early = c.at("early_stopping");
  r.beams = BeamOptions{.beams = static_cast<int>(c.at("beams").as_int64()),
                        .returned = static_cast<int>(c.at("returned").as_int64()),
                        .length_penalty = c.at("length_penalty").to_number<double>(),
                        .early_stopping = early.is_string() ? EarlyStopping::kNever
                                          : early.as_bool() ? EarlyStopping::kTrue
                                                            : EarlyStopping::kFalse};
  r.choices = r.beams->returned;
  auto streams = engine.submit_choices(std::move(r));
  EXPECT_TRUE(streams.ok()) << streams.error().message;
  while (engine.step()) {
  }
  std::vector<Scored> out;
  for (auto& stream : *streams) {
    Scored& one = out.emplace_back();
    while (auto event = stream->next()) one.tokens.push_back(event->token);
    const Finish& finish = stream->wait();
    if (finish.stop_token >= 0) one.tokens.push_back(finish.stop_token);
    one.score = finish.score.value_or(NAN);
  }
  return out;
}

class GoldenBeams : public ::testing::TestWithParam<std::string> {
 protected:
  void expect_all(const EngineOptions& options, double tolerance, int least_equal) {
    const std::string folder = std::string(VT_FIXTURES "/beams/") + GetParam();
    const json::object golden = json::parse(read_text(folder + "/beams.json")).as_object();
    const auto ids = json::value_to<std::vector<std::int32_t>>(golden.at("ids"));
    auto engine = Engine::create(open_model(folder), options);
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    int equal = 0, cases = 0;
    for (const json::value& value : golden.at("cases").as_array()) {
      const json::object& c = value.as_object();
      SCOPED_TRACE(fmt::format("case {}", cases++));
      const auto found = search(**engine, c, ids);
      const auto scores = json::value_to<std::vector<double>>(c.at("scores"));
      const auto sequences =
          json::value_to<std::vector<std::vector<std::int32_t>>>(c.at("sequences"));
      ASSERT_EQ(found.size(), sequences.size());
      bool same = true;
      for (std::size_t i = 0; i < found.size(); ++i) {
        // Large scores are products of sums in f32 there.
        EXPECT_NEAR(found[i].score, scores[i], tolerance + 1e-6 * std::abs(scores[i])) << i;
        // Of two that score alike, either may come first.
        bool here = false;
        for (std::size_t k = 0; k < sequences.size(); ++k)
          here |= std::abs(scores[k] - scores[i]) < 1e-4 && found[i].tokens == sequences[k];
        same &= here;
      }
      equal += same;
    }
    EXPECT_GE(equal, least_equal);
    EXPECT_EQ(cases, 14);
  }
};

TEST_P(GoldenBeams, Ref) {
  EngineOptions options = ref_options();
  options.sequences = 8;
  expect_all(options, 1e-4, 14);
}

// Products in bf16 move the scores, and with them the texts.
TEST_P(GoldenBeams, Cpu) {
  for (const std::string& isa : cpu_isas()) {
    SCOPED_TRACE(isa);
    EngineOptions options = cpu_options(isa, DType::kF32);
    options.sequences = 8;
    if (isa == "bf16" || isa == "amx")
      expect_all(options, 1e9, 7);
    else
      expect_all(options, 1e-3, 14);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenBeams, ::testing::Values("llama", "mistral-swa"),
                         [](const auto& info) {
                           return info.param.substr(0, info.param.find('-'));
                         });

}  // namespace
}  // namespace vitrine::test
