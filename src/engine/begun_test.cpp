// Sequences that go on from output that is already there, rows that are computed again, and sequences
// that are held.
#include <atomic>
#include <thread>

#include "engine/test_engine.h"

namespace vitrine {
namespace {

using test::drain;
using test::make_engine;
using test::tokens_of;

std::vector<std::int32_t> answer(Engine& engine, Request r) {
  auto stream = engine.submit(std::move(r));
  EXPECT_TRUE(stream.ok()) << stream.error().message;
  drain(engine);
  return tokens_of(**stream);
}

Request with_penalties(int seed, double temperature) {
  Request r = test::request(seed, 40, 24, temperature);
  EXPECT_TRUE(r.sampling.set("repetition_penalty", 1.2).ok());
  EXPECT_TRUE(r.sampling.set("frequency_penalty", 0.7).ok());
  return r;
}

TEST(BegunTest, GoesOnAsItWentOn) {
  for (bool window : {false, true})
    for (int delay : {0, 1}) {
      EngineOptions o = test::options(2);
      o.commit_delay = delay;
      auto engine = make_engine(o, window);
      for (int kind = 0; kind < 4; ++kind) {
        const Request whole = kind == 0   ? test::request(1, 40, 24, 0)
                              : kind == 1 ? test::request(2, 37, 24, 1)
                              : kind == 2 ? with_penalties(3, 1)
                                          : with_penalties(4, 0);
        const auto said = answer(*engine, whole);
        ASSERT_EQ(said.size(), 24u);
        for (int n : {0, 1, 8, 9, 23}) {
          Request fork = whole;
          fork.begun.assign(said.begin(), said.begin() + n);
          EXPECT_EQ(answer(*engine, fork), std::vector<std::int32_t>(said.begin() + n, said.end()))
              << kind << " " << n;
        }
      }
    }
}

TEST(BegunTest, PagesComeFromTheCacheAndTheAccountIsItsOwn) {
  auto engine = make_engine(test::options(1));
  Request whole = test::request(1, 40, 30);
  const auto said = answer(*engine, whole);
  whole.begun.assign(said.begin(), said.begin() + 24);
  whole.parent = 7;
  auto stream = engine->submit(whole);
  ASSERT_TRUE(stream.ok());
  drain(*engine);
  const Account& account = (*stream)->wait().account;
  EXPECT_EQ(account.usage.prompt_tokens, 64);
  EXPECT_EQ(account.usage.completion_tokens, 6);
  EXPECT_EQ(account.usage.cached_tokens, 48) << "all whole pages but the one of the last row";
  EXPECT_EQ(account.parent, 7u);
  EXPECT_GT(account.timings.ttft_ms, 0);
}

TEST(BegunTest, ChoicesKeepTheirRandomNumbers) {
  auto engine = make_engine(test::options(4));
  Request whole = test::request(5, 20, 16);
  whole.choices = 3;
  auto streams = engine->submit_choices(whole);
  ASSERT_TRUE(streams.ok());
  drain(*engine);
  std::vector<std::vector<std::int32_t>> said;
  for (auto& stream : *streams) said.push_back(tokens_of(*stream));
  EXPECT_NE(said[1], said[2]);
  for (int i = 0; i < 3; ++i) {
    Request fork = test::request(5, 20, 16);
    fork.first_choice = i;
    fork.begun.assign(said[i].begin(), said[i].begin() + 5);
    EXPECT_EQ(answer(*engine, fork), std::vector<std::int32_t>(said[i].begin() + 5, said[i].end()));
  }
  // Several from one place share the pages of what had begun.
  Request many = test::request(5, 20, 16);
  many.begun.assign(said[0].begin(), said[0].begin() + 5);
  many.choices = 3;
  auto forks = engine->submit_choices(many);
  ASSERT_TRUE(forks.ok());
  drain(*engine);
  EXPECT_EQ(tokens_of(*(*forks)[0]), std::vector<std::int32_t>(said[0].begin() + 5, said[0].end()));
  EXPECT_EQ(tokens_of(*(*forks)[2]).size(), 11u);
}

TEST(BegunTest, IsRefusedWhereItCannotBe) {
  auto engine = make_engine(test::options(1));
  const auto refuse = [&](auto change) {
    Request r = test::request(1, 10, 5);
    r.begun = {5, 6};
    change(r);
    auto stream = engine->submit(std::move(r));
    ASSERT_FALSE(stream.ok());
    EXPECT_NE(stream.error().message.find("begun"), std::string::npos) << stream.error().message;
  };
  refuse([](Request& r) { r.begun = {5, test::kVocab}; });
  refuse([](Request& r) { r.begun = {-1}; });
  refuse([](Request& r) { r.begun.resize(5, 5); });
  refuse([](Request& r) { r.begun.resize(test::kContext, 5), r.max_tokens.reset(); });
  refuse([](Request& r) { r.begun = {test::kEos}, r.ignore_eos = false; });
}

// Whole pages before the first wanted row come from the cache, and the rows are the same.
TEST(ReplayTest, RowsAreTheSameBitsFromTheCache) {
  for (bool window : {false, true}) {
    auto engine = make_engine(test::options(1), window);
    Request r = test::request(3, 90, 0);
    std::map<int, std::vector<float>> rows[3];
    int cached[3];
    for (int i = 0; i < 3; ++i) {
      r.logit_positions.clear();
      if (i == 0)
        for (int p = 0; p < 90; ++p) r.logit_positions.push_back(p);
      if (i == 1) r.logit_positions = {70, 50, 89};
      if (i == 2) r.logit_positions = {89};
      auto stream = engine->submit(r);
      ASSERT_TRUE(stream.ok());
      drain(*engine);
      rows[i] = (*stream)->logits();
      cached[i] = (*stream)->wait().account.usage.cached_tokens;
    }
    EXPECT_EQ(cached[0], 0);
    EXPECT_EQ(cached[2], 80);
    if (!window) {
      EXPECT_EQ(cached[1], 48);
    }
    EXPECT_EQ(rows[0].size(), 90u);
    EXPECT_EQ(rows[1].size(), 3u);
    EXPECT_EQ(rows[2].size(), 1u);
    for (const auto& part : {rows[1], rows[2]})
      for (const auto& [position, row] : part) EXPECT_EQ(row, rows[0][position]) << position;
  }
}

TEST(HoldTest, DrawsWhatItIsAllowed) {
  for (int delay : {0, 1}) {
    EngineOptions o = test::options(1);
    o.commit_delay = delay;
    auto engine = make_engine(o);
    const auto said = answer(*engine, test::request(1, 20, 12));
    Request r = test::request(1, 20, 12);
    r.allow = 3;
    auto stream = *engine->submit(r);
    const auto go = [&] {
      for (int i = 0; i < 20; ++i) engine->step();
      return stream->drawn();
    };
    EXPECT_EQ(go(), 3);
    EXPECT_TRUE(stream->held());
    EXPECT_FALSE(stream->finished());
    stream->allow(1);
    EXPECT_FALSE(stream->held());
    EXPECT_EQ(go(), 4);
    stream->allow(1), stream->allow(1);
    EXPECT_EQ(go(), 6) << "each counts";
    stream->release();
    drain(*engine);
    EXPECT_TRUE(stream->finished());
    EXPECT_EQ(tokens_of(*stream), said);
  }
}

// A seat is all that it has, and others take it.
TEST(HoldTest, BlocksNobody) {
  for (Policy policy : {Policy::kContinuous, Policy::kStatic}) {
    EngineOptions o = test::options(1);
    o.policy = policy, o.static_wait_ms = 0;
    auto engine = make_engine(o);
    const auto said = answer(*engine, test::request(1, 20, 12));
    Request r = test::request(1, 20, 12);
    r.allow = 2;
    auto held = *engine->submit(r);
    for (int i = 0; i < 10; ++i) engine->step();
    EXPECT_TRUE(held->held());
    auto other = *engine->submit(test::request(2, 20, 5));
    for (int i = 0; i < 20 && !other->finished(); ++i) engine->step();
    EXPECT_TRUE(other->finished()) << policy_name(policy);
    EXPECT_FALSE(held->finished());
    held->release();
    drain(*engine);
    EXPECT_EQ(tokens_of(*held), said);
    EXPECT_GT(held->wait().account.preemptions, 0);
  }
}

// Two who allow at the same time both count.
TEST(HoldTest, NoWordIsLost) {
  constexpr int kTimes = 50;
  auto engine = make_engine(test::options(1));
  for (int i = 0; i < 40; ++i) {
    Request r = test::request(1, 4, 200);
    r.allow = 0;
    auto held = *engine->submit(r);
    std::atomic<int> there{0};
    auto allow = [&] {
      ++there;
      while (there < 2) continue;
      for (int k = 0; k < kTimes; ++k) held->allow(1);
    };
    std::thread other(allow);
    allow();
    other.join();
    for (int k = 0; k < 2 * kTimes + 10; ++k) engine->step();
    EXPECT_EQ(held->drawn(), 2 * kTimes);
    held->cancel();
    drain(*engine);
  }
}

TEST(HoldTest, NotForEver) {
  EngineOptions o = test::options(1);
  o.hold_timeout_ms = 0;
  auto engine = make_engine(o);
  Request r = test::request(1, 20, 12);
  r.allow = 1;
  auto stream = *engine->submit(r);
  for (int i = 0; i < 20; ++i) engine->step();
  EXPECT_TRUE(stream->finished());
  EXPECT_EQ(stream->wait().reason, FinishReason::kTimeout);
  drain(*engine);
}

}  // namespace
}  // namespace vitrine
