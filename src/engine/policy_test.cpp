// Which request runs when, and what ends it: priorities, deadlines, readers that stall, static
// batches, limits.
#include "engine/test_answers.h"

namespace vitrine {
namespace {

using namespace test;

TEST(Policy, AShortPromptIsNotHeldUpByALongOne) {
  EngineOptions o = options(3);
  o.step_tokens = 32;
  auto engine = make_engine(o);
  auto decoding = *engine->submit(request(1, 8, 60));
  engine->step();
  auto longer = *engine->submit(request(2, 200, 4));
  auto shorter = *engine->submit(request(3, 8, 4));
  drain(*engine);
  // Every step while the long prompt was prefilled also decoded; the short one was done first.
  int mixed = 0;
  for (const StepRecord& r : engine->steps_since(0))
    if (r.prefill_tokens > 0 && r.step > 0) {
      EXPECT_GE(r.decode_tokens, 1);
      EXPECT_LE(r.prefill_tokens + r.decode_tokens, 32);
      mixed += 1;
    }
  EXPECT_GE(mixed, 6);
  EXPECT_LT(shorter->next()->at_ns, longer->next()->at_ns);
}

TEST(Policy, PriorityGoesFirst) {
  auto engine = make_engine(options(1));
  std::vector<std::shared_ptr<TokenStream>> streams;
  for (int priority : {0, 5, -5, 1}) {
    Request r = request(priority + 10, 10, 3);
    r.priority = priority;
    streams.push_back(*engine->submit(r));
  }
  drain(*engine);
  auto first = [&](int i) { return streams[i]->next()->at_ns; };
  std::int64_t at[4] = {first(0), first(1), first(2), first(3)};
  EXPECT_LT(at[2], at[0]);
  EXPECT_LT(at[0], at[3]);
  EXPECT_LT(at[3], at[1]);
}

TEST(Policy, AHigherPriorityTakesThePlaceOfALower) {
  auto engine = make_engine(options(1));
  Request low = request(1, 10, 40), high = request(2, 10, 5);
  auto expected = alone(low, false)[0].tokens;
  auto first = *engine->submit(low);
  for (int i = 0; i < 10; ++i) engine->step();
  high.priority = -1;
  auto second = *engine->submit(high);
  drain(*engine);
  EXPECT_EQ(first->wait().account.preemptions, 1);
  std::int64_t last = 0;
  for (int i = 0; i < 5; ++i) last = second->next()->at_ns;
  std::vector<std::int32_t> tokens;
  std::int64_t end = 0;
  while (auto event = first->next()) tokens.push_back(event->token), end = event->at_ns;
  EXPECT_LT(last, end);
  EXPECT_EQ(tokens, expected);
}

TEST(Policy, TheQueueIsBounded) {
  EngineOptions o = options(1);
  o.max_queue = 3;
  auto engine = make_engine(o);
  std::vector<std::shared_ptr<TokenStream>> streams;
  for (int i = 0; i < 3; ++i) streams.push_back(*engine->submit(request(i, 10, 3)));
  auto refused = engine->submit(request(9, 10, 3));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kBusy);
  EXPECT_GE(engine->retry_after_seconds(), 1);
  engine->step();
  EXPECT_TRUE(engine->submit(request(9, 10, 3)).ok());
  EXPECT_EQ(engine->metrics().rejected, 1u);
  drain(*engine);
}

TEST(Policy, ADeadlineEndsWithWhatThereIs) {
  auto engine = make_engine(options(1));
  Request r = request(1, 10, 200);
  // Long enough for five steps on a machine that has other things to do.
  const auto deadline = Clock::now() + std::chrono::milliseconds(1500);
  r.timeout = std::chrono::milliseconds(1500);
  auto running = *engine->submit(r);
  r.timeout = std::chrono::milliseconds(1);
  auto waiting = *engine->submit(r);
  for (int i = 0; i < 5; ++i) engine->step();
  std::this_thread::sleep_until(deadline + std::chrono::milliseconds(50));
  drain(*engine);
  EXPECT_EQ(running->wait().reason, FinishReason::kTimeout);
  EXPECT_EQ(tokens_of(*running).size(), 5u);
  EXPECT_EQ(waiting->wait().reason, FinishReason::kTimeout);
  EXPECT_EQ(waiting->wait().account.usage.completion_tokens, 0);
}

TEST(Policy, AStalledReaderPausesAndGivesWay) {
  EngineOptions o = options(1);
  auto engine = make_engine(o);
  Request slow = request(1, 10, 40);
  slow.max_backlog = 4;
  auto expected = alone(slow, false)[0].tokens;
  auto stalled = *engine->submit(slow);
  for (int i = 0; i < 20; ++i) engine->step();
  EXPECT_EQ(engine->snapshot().running[0].state, SequenceState::kPaused);
  EXPECT_EQ(engine->snapshot().running[0].account.usage.completion_tokens, 4);
  auto other = *engine->submit(request(2, 10, 5));
  for (int i = 0; i < 20; ++i) engine->step();
  EXPECT_EQ(tokens_of(*other).size(), 5u) << "the only place was kept by a stalled reader";
  Answer got;
  for (int i = 0; i < 1000 && got.tokens.size() < 40; ++i) {
    auto part = answer_of(*stalled).tokens;
    got.tokens.insert(got.tokens.end(), part.begin(), part.end());
    engine->step();
    engine->check_integrity();
  }
  EXPECT_EQ(got.tokens, expected);
}

TEST(Policy, StaticBatchesRunToTheirSlowestMember) {
  EngineOptions o = options(3);
  o.policy = Policy::kStatic;
  o.static_wait_ms = 20;
  auto engine = make_engine(o);
  std::vector<std::shared_ptr<TokenStream>> streams;
  for (int i = 0; i < 2; ++i) streams.push_back(*engine->submit(request(i, 10, 5 + 20 * i)));
  EXPECT_FALSE(engine->step()) << "the batch is not full";
  for (int i = 2; i < 6; ++i) streams.push_back(*engine->submit(request(i, 10, 10)));
  for (int i = 0; i < 24; ++i) {
    engine->step();
    EXPECT_EQ(engine->snapshot().waiting.size(), 3u) << "somebody joined a running batch";
  }
  while (!engine->snapshot().running.empty() || !engine->snapshot().waiting.empty()) engine->step();
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(tokens_of(*streams[i]),
              alone(request(i, 10, i < 2 ? 5 + 20 * i : 10), false)[0].tokens);
  auto last = *engine->submit(request(9, 10, 3));
  std::this_thread::sleep_for(std::chrono::milliseconds(25));
  drain(*engine);
  EXPECT_EQ(tokens_of(*last).size(), 3u) << "a batch that never fills must still run";
}

TEST(Policy, EndsOnlyAfterMinTokensAndAtStopTokens) {
  auto engine = make_engine(options(1));
  Request r = request(1, 10, 60, 0);
  auto free_run = alone(r, false)[0].tokens;
  r.stop_token_ids = {free_run[6]};
  std::size_t at = std::find(free_run.begin(), free_run.end(), free_run[6]) - free_run.begin();
  auto stream = *engine->submit(r);
  drain(*engine);
  EXPECT_EQ(stream->wait().reason, FinishReason::kStop);
  EXPECT_EQ(stream->wait().stop_token, free_run[6]);
  EXPECT_EQ(tokens_of(*stream).size(), at);
  r.min_tokens = 30;
  stream = *engine->submit(r);
  drain(*engine);
  auto tokens = tokens_of(*stream);
  EXPECT_GE(tokens.size(), 30u);
  EXPECT_EQ(std::count(tokens.begin(), tokens.begin() + 30, free_run[6]), 0);
}

}  // namespace
}  // namespace vitrine
