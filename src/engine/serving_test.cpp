// Sharing, preempting, cancelling, forking: whatever happens around a request, its tokens are those
// of the same request alone, and the books of the pages are exact.
#include <gmock/gmock.h>

#include "engine/test_answers.h"
#include "engine/test_load.h"

namespace vitrine {
namespace {

using namespace test;

struct Client {
  Request request;
  std::vector<std::shared_ptr<TokenStream>> streams;
  std::vector<Answer> answers;
};

void read(Client& c) {
  for (std::size_t i = 0; i < c.streams.size(); ++i) {
    Answer part = answer_of(*c.streams[i]);
    Answer& all = c.answers[i];
    all.tokens.insert(all.tokens.end(), part.tokens.begin(), part.tokens.end());
    all.logprobs.insert(all.logprobs.end(), part.logprobs.begin(), part.logprobs.end());
  }
}

class Interleaving : public testing::TestWithParam<std::tuple<bool, int>> {};

TEST_P(Interleaving, PagesAreExactAndEveryAnswerIsTheOneAlone) {
  auto [window, delay] = GetParam();
  std::mt19937 rng(window * 2 + delay + 1);
  auto engine = make_engine(cramped(delay), window);
  std::vector<Client> clients;
  int operations = 0;
  while (operations < 3000) {
    switch (rng() % 8) {
      case 0: {
        Client c{random_request(rng), {}, {}};
        auto streams = engine->submit_choices(c.request);
        if (!streams.ok()) break;
        c.streams = *streams;
        c.answers.resize(c.streams.size());
        clients.push_back(std::move(c));
        break;
      }
      case 1:
        if (!clients.empty() && rng() % 3 == 0) {
          Client& c = clients[rng() % clients.size()];
          c.streams[rng() % c.streams.size()]->cancel();
        }
        break;
      case 2:
        for (Client& c : clients)
          if (rng() % 4) read(c);
        break;
      default:
        engine->step();
    }
    engine->check_integrity();
    ++operations;
  }
  for (int i = 0; i < 200000; ++i) {
    bool worked = engine->step();
    for (Client& c : clients) read(c);
    if (!worked && engine->snapshot().running.empty() && engine->snapshot().waiting.empty()) break;
  }
  for (int used : engine->pages_used()) EXPECT_EQ(used, 0);
  Metrics m = engine->metrics();
  EXPECT_GT(m.preemptions, 50u) << "the pool was never short: the test shows nothing";
  EXPECT_GT(m.evictions, 50u);
  EXPECT_GT(m.prefix_hits, 0u);
  int complete = 0;
  for (Client& c : clients) {
    auto expected = alone(c.request, window);
    for (std::size_t i = 0; i < c.streams.size(); ++i) {
      const Finish& f = c.streams[i]->wait();
      read(c);
      if (f.reason == FinishReason::kCancelled) {
        expected[i].tokens.resize(std::min(expected[i].tokens.size(), c.answers[i].tokens.size()));
        expected[i].logprobs.resize(expected[i].tokens.size());
      } else {
        ++complete;
      }
      ASSERT_EQ(c.answers[i].tokens, expected[i].tokens)
          << "choice " << i << " of " << c.streams.size() << ", preempted " << f.account.preemptions
          << " times, cached " << f.account.usage.cached_tokens;
      ASSERT_EQ(c.answers[i], expected[i]) << "log probabilities";
    }
  }
  EXPECT_GT(complete, 100);
}

INSTANTIATE_TEST_SUITE_P(All, Interleaving,
                         testing::Combine(testing::Bool(), testing::Values(0, 1)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param) ? "Window" : "Full") +
                                  (std::get<1>(info.param) ? "Late" : "");
                         });

TEST(Serving, ASharedPrefixIsComputedOnce) {
  for (bool window : {false, true}) {
    auto engine = make_engine(options(2), window);
    Request r = request(1, 100, 40);
    auto first = *engine->submit(r);
    drain(*engine);
    auto second = *engine->submit(r);
    drain(*engine);
    EXPECT_EQ(first->wait().account.usage.cached_tokens, 0);
    EXPECT_EQ(second->wait().account.usage.cached_tokens, 96);
    EXPECT_EQ(second->wait().account.cache.miss, CacheMiss::kNone);
    auto answer = answer_of(*first).tokens;
    EXPECT_EQ(answer, answer_of(*second).tokens);
    // A prompt that goes on from an answer finds the answer's pages too.
    Request longer = r;
    longer.prompt.insert(longer.prompt.end(), answer.begin(), answer.end());
    longer.prompt.push_back(5);
    auto third = *engine->submit(longer);
    drain(*engine);
    EXPECT_EQ(third->wait().account.usage.cached_tokens, 128);
    EXPECT_EQ(answer_of(*third).tokens, alone(longer, window)[0].tokens);
  }
}

TEST(Serving, SaysWhyTheCacheDidNotHelp) {
  EngineOptions o = options(1);
  o.kv_tokens = kContext;
  auto engine = make_engine(o);
  auto run = [&](Request r) {
    auto stream = *engine->submit(std::move(r));
    drain(*engine);
    return stream->wait().account.cache;
  };
  Request r = request(1, 100, 4);
  EXPECT_EQ(run(r).miss, CacheMiss::kNew);
  Request other = r;
  other.prompt[37] = r.prompt[37] == 5 ? 6 : 5;
  CacheAccount c = run(other);
  EXPECT_EQ(c.miss, CacheMiss::kDiffers);
  EXPECT_EQ(c.cached, 32);
  EXPECT_EQ(c.position, 37);
  EXPECT_EQ(c.here, other.prompt[37]);
  EXPECT_EQ(c.there, r.prompt[37]);
  Request salted = r;
  salted.cache_salt = "tenant";
  EXPECT_EQ(run(salted).miss, CacheMiss::kNew);
  EXPECT_EQ(run(salted).cached, 96);
  Request bypassed = r;
  bypassed.prompt_logprobs = true;
  c = run(bypassed);
  EXPECT_EQ(c.miss, CacheMiss::kBypassed);
  EXPECT_EQ(c.cached, 0);
  run(request(77, kContext - 10, 4));  // needs the whole pool
  c = run(r);
  EXPECT_EQ(c.miss, CacheMiss::kEvicted);
  EXPECT_NE(c.text().find("make room"), std::string::npos);
}

TEST(Serving, ChoicesShareThePromptAndCopyOnWrite) {
  EngineOptions o = options(4);
  o.poison_pages = true;
  auto engine = make_engine(o);
  Request r = request(4, 70, 30);
  r.choices = 4;
  auto streams = *engine->submit_choices(r);
  int shared = 0, copied = 0;
  while (engine->step()) {
    engine->check_integrity();
    shared = std::max(shared, engine->snapshot().pools[0].shared);
  }
  for (const StepRecord& step : engine->steps_since(0)) copied += step.pages_copied;
  EXPECT_EQ(shared, 5);  // 70 tokens on pages of 16, the last one partly filled
  EXPECT_EQ(copied, 3);  // the last holder writes in place
  int prefilled = 0;
  for (const StepRecord& step : engine->steps_since(0)) prefilled += step.prefill_tokens;
  EXPECT_EQ(prefilled, 70);
  std::vector<std::vector<std::int32_t>> answers;
  for (auto& s : streams) answers.push_back(tokens_of(*s));
  for (int i = 1; i < 4; ++i) EXPECT_NE(answers[0], answers[i]);
  // One choice at a time, on an engine with one place, gives the same.
  auto narrow = make_engine(options(1));
  auto again = *narrow->submit_choices(r);
  drain(*narrow);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(tokens_of(*again[i]), answers[i]);
}

TEST(Serving, PreemptedOnesAreToldAboutIt) {
  EngineOptions o = options(4);
  o.kv_tokens = kContext;
  auto engine = make_engine(o);
  std::vector<std::shared_ptr<TokenStream>> streams;
  for (int i = 0; i < 4; ++i) streams.push_back(*engine->submit(request(i, 60, 120)));
  drain(*engine);
  int preempted = 0, recomputed = 0;
  for (auto& s : streams) {
    EXPECT_EQ(s->wait().reason, FinishReason::kLength);
    preempted += s->wait().account.preemptions;
    recomputed += s->wait().account.recomputed_tokens;
  }
  EXPECT_GT(preempted, 0);
  EXPECT_GT(recomputed, 0);
  EXPECT_EQ(streams[0]->wait().account.preemptions, 0) << "the first by rank is never preempted";
  EXPECT_EQ(engine->metrics().preemptions, static_cast<std::uint64_t>(preempted));
}

TEST(Serving, NanInPagesHarmsNobodyLater) {
  EngineOptions o = options(2);
  o.kv_tokens = kContext;
  auto engine = make_engine(o);
  auto expected = alone(request(3, 40, 30), false)[0].tokens;
  for (int i = 0; i < 20; ++i) {
    Request bad = request(50 + i, 100, 10);
    bad.prompt[i] = kNanToken;
    auto poisoned = *engine->submit(bad);
    auto good = *engine->submit(request(3, 40, 30));
    drain(*engine);
    EXPECT_EQ(poisoned->wait().reason, FinishReason::kError);
    ASSERT_EQ(tokens_of(*good), expected);
  }
}

// Where a step as a whole throws, those that run are told, and the engine goes on as if they had never
// been.
TEST(Serving, AStepThatThrowsEndsWhatRunsAndNothingElse) {
  for (int delay : {0, 1})
    for (int fatal = 1; fatal < 6; ++fatal) {
      auto engine = make_engine(cramped(delay));
      int calls = 0;
      Request bad = request(1, 40, 20);
      bad.choices = 2;
      bad.on_ready = [&calls, fatal] {
        if (++calls == fatal) throw std::runtime_error("a hook failed");
      };
      auto first = *engine->submit_choices(bad);
      auto second = *engine->submit_choices(request(2, 30, 20));
      for (int i = 0; i < 200 && calls < fatal; ++i) engine->step();
      ASSERT_EQ(calls >= fatal, true);
      engine->check_integrity();
      for (const auto& streams : {first, second})
        for (const auto& stream : streams) {
          EXPECT_EQ(stream->wait().reason, FinishReason::kError);
          EXPECT_THAT(stream->wait().error, ::testing::HasSubstr("a hook failed"));
        }
      for (int used : engine->pages_used()) EXPECT_EQ(used, 0);
      Request after = request(2, 30, 20);
      auto again = *engine->submit_choices(after);
      drain(*engine);
      EXPECT_EQ(answer_of(*again[0]), alone(after, false)[0]);
      std::uint64_t last = 0;
      for (const StepRecord& record : engine->steps_since(0)) {
        EXPECT_GE(record.step, last) << "in order";
        last = record.step + 1;
      }
      EXPECT_GT(last, 5u);
    }
}

}  // namespace
}  // namespace vitrine
