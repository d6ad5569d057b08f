// Embeddings: the right vectors, whatever else runs, however the prompt is cut, cached or
// preempted.
#include <gmock/gmock.h>

#include "engine/test_engine.h"

namespace vitrine {
namespace {

using namespace test;
using ::testing::HasSubstr;

Request embedding(int seed, int length, Pooling pooling) {
  Request r = request(seed, length, 0);
  r.pooling = pooling;
  return r;
}

std::vector<float> alone(const Request& r, bool window = false) {
  auto engine = make_engine(options(), window);
  auto stream = *engine->submit(r);
  drain(*engine);
  EXPECT_EQ(stream->wait().reason, FinishReason::kStop) << stream->wait().error;
  return stream->embedding();
}

double dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

// The head is linear, so the head of the mean state is the mean of the logits, and it has full
// rank, so that its product determines the state.
TEST(Embedding, PoolsTheHiddenStatesThatRefMakesLogitsOf) {
  // The GPU multiplies activations of 8 bits with these weights.
  const double allowed = options().backend == "cuda" ? 3e-2 : 1e-3;
  for (bool window : {false, true}) {
    Request r = request(5, 70, 0);
    for (int i = 0; i < 70; ++i) r.logit_positions.push_back(i);
    EngineOptions o = options();
    o.backend = "ref";
    auto ref = make_engine(o, window);
    auto stream = *ref->submit(r);
    drain(*ref);
    const TensorInfo* head = model(window)->find("lm_head.weight");
    ASSERT_NE(head, nullptr);
    std::span<const float> W(reinterpret_cast<const float*>(head->data.data()), kVocab * kDim);
    for (Pooling pooling : {Pooling::kMean, Pooling::kLast}) {
      std::vector<float> expected(kVocab, 0.0f), got(kVocab);
      for (const auto& [position, row] : stream->logits())
        for (int v = 0; v < kVocab; ++v)
          if (pooling == Pooling::kMean || position == 69) expected[v] += row[v];
      Request e = embedding(5, 70, pooling);
      std::vector<float> vector = alone(e, window);
      ASSERT_EQ(vector.size(), static_cast<std::size_t>(kDim));
      EXPECT_NEAR(dot(vector, vector), 1, 1e-5);
      for (int v = 0; v < kVocab; ++v)
        got[v] = static_cast<float>(dot(vector, W.subspan(v * kDim, kDim)));
      double scale = std::sqrt(dot(expected, expected) / dot(got, got));
      for (int v = 0; v < kVocab; ++v)
        EXPECT_NEAR(got[v] * scale, expected[v], allowed * scale) << v << pooling_name(pooling);
    }
  }
}

TEST(Embedding, InABatchInChunksAndLateItIsTheOneAlone) {
  for (Pooling pooling : {Pooling::kMean, Pooling::kLast})
    for (int delay : {0, 1})
      for (int step : {7, 512}) {
        EngineOptions o = options(6);
        o.commit_delay = delay, o.step_tokens = step;
        auto engine = make_engine(o, true);
        std::vector<std::shared_ptr<TokenStream>> streams;
        auto text = *engine->submit(request(99, 12, 30));
        for (int i = 0; i < 12; ++i)
          streams.push_back(*engine->submit(embedding(i, 1 + i * 9, pooling)));
        drain(*engine);
        for (int i = 0; i < 12; ++i)
          EXPECT_EQ(streams[i]->embedding(), alone(embedding(i, 1 + i * 9, pooling), true))
              << i << pooling_name(pooling) << delay << step;
        auto again = make_engine(options(), true);
        auto reference = *again->submit(request(99, 12, 30));
        drain(*again);
        EXPECT_EQ(tokens_of(*text), tokens_of(*reference));
      }
}

TEST(Embedding, AMeanIsOverTokensThatTheCacheHasToo) {
  auto engine = make_engine(options(2));
  auto warm = *engine->submit(request(3, 90, 4));
  drain(*engine);
  for (Pooling pooling : {Pooling::kMean, Pooling::kLast}) {
    Request r = embedding(3, 90, pooling);
    auto stream = *engine->submit(r);
    drain(*engine);
    EXPECT_EQ(stream->embedding(), alone(r)) << pooling_name(pooling);
    int cached = stream->wait().account.usage.cached_tokens;
    EXPECT_EQ(cached, pooling == Pooling::kMean ? 0 : 80);
  }
  // The other way round, what a mean computed serves those after it.
  auto again = make_engine(options(2));
  auto mean = *again->submit(embedding(3, 90, Pooling::kMean));
  drain(*again);
  auto text = *again->submit(request(3, 90, 1));
  drain(*again);
  EXPECT_EQ(text->wait().account.usage.cached_tokens, 80);
}

TEST(Embedding, APreemptedOneBeginsAnew) {
  EngineOptions o = options(8);
  o.kv_tokens = 16 * 12, o.step_tokens = 16, o.context = 128;
  auto engine = make_engine(o);
  std::vector<std::shared_ptr<TokenStream>> streams, texts;
  for (int i = 0; i < 4; ++i) texts.push_back(*engine->submit(request(50 + i, 20, 60)));
  for (int i = 0; i < 6; ++i)
    streams.push_back(*engine->submit(embedding(i, 60 + i, Pooling::kMean)));
  drain(*engine);
  EXPECT_GT(engine->metrics().preemptions, 0u);
  int preempted = 0;
  for (int i = 0; i < 6; ++i) {
    preempted += streams[i]->wait().account.preemptions;
    EXPECT_EQ(streams[i]->embedding(), alone(embedding(i, 60 + i, Pooling::kMean))) << i;
  }
  EXPECT_GT(preempted, 0);
}

TEST(Embedding, CountsItsTokensAndFillsTheContext) {
  auto engine = make_engine(options());
  auto stream = *engine->submit(embedding(1, kContext, Pooling::kMean));
  drain(*engine);
  const Finish& finish = stream->wait();
  EXPECT_EQ(finish.reason, FinishReason::kStop);
  EXPECT_EQ(finish.account.usage.prompt_tokens, kContext);
  EXPECT_EQ(finish.account.usage.completion_tokens, 0);
  EXPECT_EQ(engine->metrics().prompt_tokens, static_cast<std::uint64_t>(kContext));
  EXPECT_EQ(engine->metrics().generation_tokens, 0u);
}

TEST(Embedding, StatesThatAreNotFiniteAreAnErrorOfTheirRequestOnly) {
  auto engine = make_engine(options(2));
  Request bad = embedding(1, 20, Pooling::kMean);
  bad.prompt[7] = kNanToken;
  auto broken = *engine->submit(bad);
  auto good = *engine->submit(embedding(2, 20, Pooling::kMean));
  drain(*engine);
  EXPECT_EQ(broken->wait().reason, FinishReason::kError);
  EXPECT_THAT(broken->wait().error, HasSubstr("not finite"));
  EXPECT_EQ(good->embedding(), alone(embedding(2, 20, Pooling::kMean)));
}

TEST(Embedding, HasNoTextAndOneAnswer) {
  auto engine = make_engine(options(2));
  Request r = embedding(1, 5, Pooling::kMean);
  r.max_tokens = 3;
  EXPECT_THAT(engine->submit(r).error().message, HasSubstr("max_tokens"));
  r.max_tokens = 0, r.choices = 2;
  EXPECT_THAT(engine->submit_choices(r).error().message, HasSubstr("choices"));
}

TEST(Pooling, Names) {
  EXPECT_EQ(*parse_pooling("mean"), Pooling::kMean);
  EXPECT_EQ(*parse_pooling("last"), Pooling::kLast);
  EXPECT_THAT(parse_pooling("cls").error().message, HasSubstr("found 'cls', allowed mean, last"));
  EXPECT_EQ(default_pooling(std::nullopt), Pooling::kMean);
  EXPECT_EQ(default_pooling("last"), Pooling::kLast);
}

}  // namespace
}  // namespace vitrine
