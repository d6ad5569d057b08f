// What a step reports, and that it allocates nothing.
#include "engine/test_answers.h"
#include "support/allocation_count.h"

namespace vitrine {
namespace {

using namespace test;

TEST(Step, LogprobsOfPromptAndOutputAreThoseOfTheLogits) {
  auto engine = make_engine(options(1));
  Request r = request(1, 20, 6, 0);
  r.logprobs = r.prompt_logprobs = true;
  r.top_logprobs = 3;
  for (int i = 0; i < 20; ++i) r.logit_positions.push_back(i);
  auto stream = *engine->submit(r);
  drain(*engine);
  std::vector<TokenEvent> events;
  std::vector<TokenLogprob> top;
  EXPECT_TRUE(stream->read(events, top));
  ASSERT_EQ(events.size(), 6u);
  ASSERT_EQ(top.size(), 18u);
  for (std::size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(top[3 * i].token, events[i].token);
    EXPECT_EQ(top[3 * i].logprob, events[i].logprob);
    EXPECT_GE(top[3 * i].logprob, top[3 * i + 1].logprob);
  }
  const PromptLogprobs& p = stream->prompt_logprobs();
  ASSERT_EQ(p.logprobs.size(), 20u);
  EXPECT_TRUE(p.top[0].empty());
  for (int i = 1; i < 20; ++i) {
    const auto& logits = stream->logits().at(i - 1);
    double sum = 0;
    for (float x : logits) sum += std::exp(static_cast<double>(x));
    EXPECT_NEAR(p.logprobs[i], logits[r.prompt[i]] - std::log(sum), 1e-4);
    EXPECT_EQ(p.top[i].size(), 3u);
  }
}

TEST(Step, TheBooksOfAPoolAddUp) {
  auto engine = make_engine(options(3));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(engine->submit(request(i, 150, 50)).ok());
  double worst = 0;
  for (int i = 0; i < 30; ++i) {
    engine->step();
    Snapshot s = engine->snapshot();
    const PoolStats& p = s.pools[0];
    EXPECT_EQ(p.total, p.free + p.cached + p.used);
    int tokens = 0;
    for (const SequenceStats& q : s.running) tokens += q.computed;
    EXPECT_EQ(p.tokens, tokens);
    worst = std::max(worst, p.waste());
  }
  EXPECT_GT(worst, 0);
  EXPECT_LT(worst, 0.1);  // at most 15 of 16 places of one page in ten
  drain(*engine);
  EXPECT_EQ(engine->snapshot().pools[0].used, 0);
  EXPECT_GT(engine->snapshot().pools[0].cached, 0);
  EXPECT_EQ(engine->accounts().size(), 3u);
}

TEST(Step, AStepAllocatesNothing) {
  if (options().backend != "cpu") GTEST_SKIP() << "steps are recorded at their second time";
  for (int delay : {0, 1}) {
    EngineOptions o = options(4);
    o.commit_delay = delay, o.threads = 1, o.step_tokens = 24;
    auto engine = make_engine(o, true);
    std::vector<std::shared_ptr<TokenStream>> streams;
    for (int i = 0; i < 4; ++i) {
      Request r = request(i, 100, 100);
      r.logprobs = true, r.top_logprobs = 5;
      streams.push_back(*engine->submit(r));
    }
    std::vector<TokenEvent> events;
    std::vector<TokenLogprob> top;
    events.reserve(1000), top.reserve(5000);
    engine->step();
    std::size_t before = allocation_count();
    for (int i = 0; i < 80; ++i) {
      engine->step();
      for (auto& s : streams) s->read(events, top);
    }
    EXPECT_EQ(allocation_count(), before);
    EXPECT_GT(events.size(), 100u);
    drain(*engine);
  }
}

}  // namespace
}  // namespace vitrine
