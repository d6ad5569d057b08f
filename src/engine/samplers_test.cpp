// Samplers that need more of the engine than a row: the tokens so far, a state, an end of their own.
#include "engine/test_engine.h"

namespace vitrine {
namespace {

using test::drain;
using test::make_engine;
using test::tokens_of;

std::vector<TokenEvent> answer(Engine& engine, Request r) {
  auto stream = engine.submit(std::move(r));
  EXPECT_TRUE(stream.ok()) << stream.error().message;
  drain(engine);
  std::vector<TokenEvent> out;
  while (auto event = (*stream)->next()) out.push_back(*event);
  return out;
}

std::vector<std::int32_t> ids(const std::vector<TokenEvent>& events) {
  std::vector<std::int32_t> out;
  for (const TokenEvent& e : events) out.push_back(e.token);
  return out;
}

Request with(int seed, std::initializer_list<std::pair<const char*, double>> values) {
  Request r = test::request(seed, 40, 24, 1.2);
  for (const auto& [name, value] : values) EXPECT_TRUE(r.sampling.set(name, value).ok()) << name;
  return r;
}

std::vector<Request> requests() {
  Request words = with(1, {{"dynatemp_range", 0.5}});
  EXPECT_TRUE(words.sampling.set_bad_words({{5}, {6, 7}}).ok());
  EXPECT_TRUE(words.sampling.set_allowed_ids({4, 5, 6, 7, 8, 9, 10}).ok());
  return {with(1, {{"mirostat", 1}, {"mirostat_tau", 3}}),
          with(2, {{"mirostat", 2}, {"mirostat_tau", 2}, {"mirostat_eta", 0.5}}),
          with(3, {{"adaptive_target", 0.3}, {"min_p", 0.01}}),
          with(4, {{"dry_multiplier", 3}, {"dry_allowed_length", 1}}),
          with(5, {{"no_repeat_ngram_size", 1}}),
          with(6, {{"xtc_probability", 0.5}, {"xtc_threshold", 0.01}}),
          words};
}

// Alone, in company, and with steps that are committed late.
TEST(SamplersTest, SameRequestSameTokens) {
  std::vector<std::vector<std::int32_t>> alone;
  for (const Request& r : requests())
    alone.push_back(ids(answer(*make_engine(test::options(1)), r)));
  for (int delay : {0, 1}) {
    EngineOptions o = test::options(4);
    o.commit_delay = delay;
    auto engine = make_engine(o);
    std::vector<std::shared_ptr<TokenStream>> streams;
    for (const Request& r : requests()) streams.push_back(*engine->submit(r));
    drain(*engine);
    for (std::size_t i = 0; i < alone.size(); ++i) EXPECT_EQ(tokens_of(*streams[i]), alone[i]) << i;
  }
}

TEST(SamplersTest, WhatHasBegunGoesOnWithItsState) {
  auto engine = make_engine(test::options(2));
  for (const Request& whole : requests()) {
    const auto said = answer(*engine, whole);
    ASSERT_EQ(said.size(), 24u);
    for (std::size_t n : {std::size_t{1}, std::size_t{9}, std::size_t{23}}) {
      Request fork = whole;
      for (std::size_t i = 0; i < n; ++i)
        fork.begun.push_back(said[i].token), fork.begun_p.push_back(said[i].p);
      auto expected = ids(said);
      expected.erase(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(n));
      EXPECT_EQ(ids(answer(*engine, fork)), expected) << n;
    }
  }
}

TEST(SamplersTest, NgramsAndListsHold) {
  auto engine = make_engine(test::options(1));
  const auto all = requests();
  const auto once = ids(answer(*engine, all[4]));
  std::vector<std::int32_t> seen = all[4].prompt;
  for (const std::int32_t id : once) {
    EXPECT_EQ(std::count(seen.begin(), seen.end(), id), 0);
    seen.push_back(id);
  }
  const auto listed = ids(answer(*engine, all[6]));
  for (std::size_t i = 0; i < listed.size(); ++i) {
    EXPECT_TRUE(listed[i] >= 4 && listed[i] <= 10 && listed[i] != 5) << listed[i];
    EXPECT_FALSE(i > 0 && listed[i - 1] == 6 && listed[i] == 7);
  }
}

TEST(SamplersTest, ATextThatGoesInCirclesEnds) {
  for (int delay : {0, 1}) {
    EngineOptions o = test::options(1);
    o.commit_delay = delay;
    auto engine = make_engine(o);
    Request r = test::request(1, 10, 24, 0);
    EXPECT_TRUE(r.sampling.set_allowed_ids({7}).ok());
    r.repetition = RepetitionEnd{.least = 1, .most = 4, .count = 5};
    auto stream = engine->submit(r);
    ASSERT_TRUE(stream.ok()) << stream.error().message;
    drain(*engine);
    EXPECT_EQ(tokens_of(**stream), std::vector<std::int32_t>(5, 7));
    const Finish& finish = (*stream)->wait();
    EXPECT_EQ(finish.reason, FinishReason::kStop);
    EXPECT_EQ(finish.stop_token, -1);
    EXPECT_EQ(finish.account.usage.completion_tokens, 5);
    r.repetition->count = 1;
    EXPECT_FALSE(engine->submit(r).ok());
  }
}

}  // namespace
}  // namespace vitrine
