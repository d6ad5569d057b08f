// Speculation on against off: the same tokens, log probabilities, ends and usage, whatever happens around a
// request. And that it saves steps where a text repeats itself.
#include <map>

#include "engine/speculator.h"
#include "engine/test_answers.h"
#include "engine/test_load.h"
#include "support/allocation_count.h"

namespace vitrine {
namespace {

using namespace test;

EngineOptions speculating(EngineOptions o, SpecMode mode) {
  o.spec = mode, o.spec_mib = 1, o.spec_always = true;
  return o;
}

// A text that goes round, for guesses to be found.
Request round_request(int seed, int period, int length, int max_tokens, double temperature) {
  Request r = request(seed, length, max_tokens, temperature);
  for (int i = period; i < length; ++i) r.prompt[i] = r.prompt[i - period];
  return r;
}

// An answer that says one token again and again.
Request stubborn_request(int seed, int length, int max_tokens) {
  Request r = request(seed, length, max_tokens, 1);
  EXPECT_TRUE(r.sampling.set_logit_bias({{7 + seed, 100}}).ok());
  return r;
}

class Speculation : public testing::TestWithParam<std::tuple<bool, SpecMode, int>> {};

// What follows is drawn under everything that can depend on the tokens before.
TEST_P(Speculation, ChangesNoAnswer) {
  const auto [window, mode, delay] = GetParam();
  std::mt19937 rng(5);
  EngineOptions o = speculating(cramped(delay), mode);
  auto engine = make_engine(o, window);
  std::vector<std::shared_ptr<TokenStream>> streams;
  std::vector<Request> requests;
  std::vector<int> choices;
  int drafted = 0, accepted = 0;
  for (int i = 0; i < 60; ++i) {
    Request r = random_request(rng);
    if (i % 2 == 0)
      for (std::size_t k = 7; k < r.prompt.size(); ++k) r.prompt[k] = r.prompt[k - 7];
    if (i % 3 == 0) {
      EXPECT_TRUE(r.sampling.set("temperature", 0).ok());
    }
    r.ignore_eos = i % 5 != 0;
    r.max_backlog = 0;
    // Samplers that look at the tokens before, that have a state, that have a coin of their own.
    static constexpr std::pair<const char*, double> kMore[] = {{"dry_multiplier", 0.8},
                                                               {"mirostat", 2},
                                                               {"no_repeat_ngram_size", 3},
                                                               {"xtc_probability", 0.5}};
    if (i % 2 == 1) {
      r.beams.reset();  // which are without these
      const auto [name, value] = kMore[i / 2 % std::size(kMore)];
      EXPECT_TRUE(r.sampling.set(name, value).ok()) << name;
    }
    auto made = *engine->submit_choices(r);
    for (int c = 0; c < static_cast<int>(made.size()); ++c) {
      streams.push_back(made[c]);
      requests.push_back(r);
      choices.push_back(c);
    }
    for (auto turns = rng() % 12; turns > 0; --turns) engine->step(), engine->check_integrity();
  }
  drain(*engine);
  for (const StepRecord& r : engine->steps_since(0)) drafted += r.drafted, accepted += r.accepted;
  EXPECT_GT(drafted, 100);
  EXPECT_GT(accepted, delay == 0 ? 10 : 2);
  EXPECT_LT(accepted, drafted);
  std::map<const TokenStream*, Answer> got;
  for (auto& s : streams) got[s.get()] = answer_of(*s);
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (choices[i] != 0) continue;
    const auto expected = alone(requests[i], window);
    for (std::size_t c = 0; c < expected.size(); ++c) {
      EXPECT_EQ(got[streams[i + c].get()], expected[c]) << "request " << i << ", choice " << c;
      const Account& a = streams[i + c]->wait().account;
      EXPECT_EQ(a.usage.completion_tokens, static_cast<int>(expected[c].tokens.size()));
      EXPECT_GE(a.drafted, a.accepted);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Speculation,
                         testing::Combine(testing::Bool(),
                                          testing::Values(SpecMode::kNgram, SpecMode::kSuffix),
                                          testing::Values(0, 1)));

TEST(Speculator, SavesSteps) {
  for (SpecMode mode : {SpecMode::kNgram, SpecMode::kSuffix}) {
    Request r = stubborn_request(3, 60, 120);
    const Answer expected = alone(r, false)[0];
    auto engine = make_engine(speculating(options(1), mode));
    auto stream = *engine->submit(r);
    drain(*engine);
    EXPECT_EQ(answer_of(*stream), expected);
    const Account a = stream->wait().account;
    EXPECT_LT(a.timings.decode_steps, 25) << spec_mode_name(mode);
    EXPECT_EQ(a.timings.decode_tokens, 119);
    EXPECT_EQ(a.timings.decode_steps + a.accepted, 119);
  }
}

// Free pages are rare where prompts are cached. Drafts are not cut at the end of each page for that.
TEST(Speculator, AFullCacheCutsNoDraft) {
  Request r = stubborn_request(3, 60, 120);
  int steps[2];
  for (const bool full : {false, true}) {
    auto engine = make_engine(speculating(options(1), SpecMode::kSuffix));
    for (int i = 0; i < 3 && full; ++i) {
      ASSERT_TRUE(engine->submit(request(i, 200, 40)).ok());
      drain(*engine);
    }
    if (full) {
      EXPECT_LE(engine->snapshot().pools[0].free, 2);
    }
    auto stream = *engine->submit(r);
    drain(*engine);
    steps[full] = stream->wait().account.timings.decode_steps;
  }
  EXPECT_LE(steps[true], steps[false] + 3);
}

// What one answer said is guessed in the next, within a scope and not beyond.
TEST(Speculator, LearnsFromEarlierAnswersOfTheSameScope) {
  auto engine = make_engine(speculating(options(1), SpecMode::kSuffix));
  auto accepted = [&](const char* salt) {
    Request r = request(9, 40, 60, 1);
    r.cache_salt = salt;
    auto stream = *engine->submit(r);
    drain(*engine);
    return stream->wait().account.accepted;
  };
  const int first = accepted("one");
  EXPECT_GT(accepted("one"), first + 30);
  EXPECT_LE(accepted("other"), first + 2);
}

TEST(Speculator, LeavesAloneWhoDoesNotWantIt) {
  auto engine = make_engine(speculating(options(2), SpecMode::kSuffix));
  Request r = round_request(3, 5, 60, 50, 0);
  r.speculative = false;
  auto plain = *engine->submit(r);
  drain(*engine);
  EXPECT_EQ(plain->wait().account.drafted, 0);
  EXPECT_EQ(plain->wait().account.timings.decode_steps, 49);
}

// No more than asked for is drawn or counted.
TEST(Speculator, EndsWhereItEndedWithout) {
  for (int most = 1; most < 20; ++most) {
    Request r = round_request(3, 5, 60, most, 0);
    auto engine = make_engine(speculating(options(1), SpecMode::kSuffix));
    auto stream = *engine->submit(r);
    drain(*engine);
    const Finish& end = stream->wait();
    EXPECT_EQ(end.reason, FinishReason::kLength);
    EXPECT_EQ(end.account.usage.completion_tokens, most);
    EXPECT_EQ(answer_of(*stream), alone(r, false)[0]);
  }
  // Held after each token.
  Request r = round_request(3, 5, 60, 30, 0);
  r.allow = 3;
  auto engine = make_engine(speculating(options(1), SpecMode::kSuffix));
  auto stream = *engine->submit(r);
  for (int i = 0; i < 20; ++i) engine->step();
  EXPECT_EQ(stream->drawn(), 3);
  stream->allow(4);
  for (int i = 0; i < 20; ++i) engine->step();
  EXPECT_EQ(stream->drawn(), 7);
  stream->release();
  drain(*engine);
  EXPECT_EQ(answer_of(*stream), alone(round_request(3, 5, 60, 30, 0), false)[0]);
}

// A token that ends the text may be the one that was guessed.
TEST(Speculator, EndTokensEndAtEveryPlaceOfADraft) {
  const Request whole = round_request(3, 5, 60, 60, 0);
  const Answer text = alone(whole, false)[0];
  for (std::size_t at = 1; at < 30; ++at) {
    Request r = whole;
    r.stop_token_ids = {text.tokens[at]};
    const Answer expected = alone(r, false)[0];
    auto engine = make_engine(speculating(options(1), SpecMode::kSuffix));
    auto stream = *engine->submit(r);
    drain(*engine);
    EXPECT_EQ(answer_of(*stream), expected);
    EXPECT_EQ(stream->wait().reason, FinishReason::kStop);
    EXPECT_EQ(stream->wait().stop_token, text.tokens[at]);
  }
}

TEST(Speculator, StepsAllocateNothing) {
  if (options().backend != "cpu") GTEST_SKIP() << "steps are recorded at their second time";
  for (const int delay : {0, 1}) {
    EngineOptions o = speculating(options(4), SpecMode::kSuffix);
    o.threads = 1, o.step_tokens = 64, o.commit_delay = delay;
    auto engine = make_engine(o, true);
    std::vector<std::shared_ptr<TokenStream>> streams;
    for (int i = 0; i < 4; ++i) {
      Request r = stubborn_request(i, 60, 150);
      r.logprobs = true, r.top_logprobs = 5;
      streams.push_back(*engine->submit(r));
    }
    std::vector<TokenEvent> events;
    std::vector<TokenLogprob> top;
    events.reserve(1000), top.reserve(5000);
    for (int i = 0; i < 8; ++i) engine->step();
    const std::size_t before = allocation_count();
    for (int i = 0; i < 12; ++i) {
      engine->step();
      for (auto& s : streams) s->read(events, top);
    }
    EXPECT_EQ(allocation_count(), before);
    std::uint64_t accepted = 0;
    for (const std::uint64_t n : engine->metrics().accepted_by_place) accepted += n;
    EXPECT_GT(accepted, 20u);
    drain(*engine);
  }
}

// Guesses are counted once, wherever they are told.
TEST(Speculator, BooksAgree) {
  auto engine = make_engine(speculating(options(3), SpecMode::kSuffix));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(engine->submit(round_request(i, 4, 50, 40, 0.5)).ok());
  drain(*engine);
  int drafted = 0, accepted = 0;
  for (const StepRecord& r : engine->steps_since(0)) {
    drafted += r.drafted, accepted += r.accepted;
    int rows = 0, drawn = 0, decoding = 0;
    for (const StepEntry& e : r.entries)
      if (e.phase == Phase::kDecode) rows += e.tokens, drawn += e.drawn, ++decoding;
    EXPECT_EQ(rows, decoding + r.drafted);
    EXPECT_EQ(drawn, decoding + r.accepted);
  }
  const Metrics m = engine->metrics();
  std::uint64_t by_place = 0;
  for (std::size_t i = 0; i < m.accepted_by_place.size(); ++i) {
    by_place += m.accepted_by_place[i];
    EXPECT_LE(m.accepted_by_place[i], m.accepted_by_place[i == 0 ? 0 : i - 1]);
  }
  EXPECT_EQ(m.drafted_tokens, static_cast<std::uint64_t>(drafted));
  EXPECT_EQ(by_place, static_cast<std::uint64_t>(accepted));
  int of_accounts = 0;
  for (const Account& a : engine->accounts()) of_accounts += a.drafted;
  EXPECT_EQ(of_accounts, drafted);
}

// Where it costs more than it brings it turns itself off, without being told.
TEST(Speculator, MemoryIsInThePlan) {
  for (SpecMode mode : {SpecMode::kNgram, SpecMode::kSuffix})
    for (int sequences : {1, 8, 64, 500})
      for (int mib : {1, 16, 64}) {
        EngineOptions o = options(sequences);
        o.spec = mode, o.spec_mib = mib;
        EXPECT_LE(Speculator(o, sequences).bytes(), (std::int64_t{mib} << 20) * 5 / 4)
            << spec_mode_name(mode) << " " << sequences << " " << mib;
      }
}

}  // namespace
}  // namespace vitrine
