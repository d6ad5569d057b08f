// Sharing, preempting, cancelling, forking: whatever happens around a request, its tokens are those
// of the same request alone, and the books of the pages are exact.
#include <bit>
#include <cstring>

#include "engine/test_engine.h"

namespace vitrine {

std::size_t allocation_count();

namespace {

using namespace test;

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> out;
  for (float v : values) out.push_back(std::bit_cast<std::uint32_t>(v));
  return out;
}

struct Answer {
  std::vector<std::int32_t> tokens;
  std::vector<float> logprobs;
  bool operator==(const Answer& other) const {
    return tokens == other.tokens && bits_of(logprobs) == bits_of(other.logprobs);
  }
};

Answer answer_of(TokenStream& stream) {
  Answer out;
  std::vector<TokenEvent> events;
  std::vector<TokenLogprob> top;
  stream.read(events, top);
  for (const TokenEvent& e : events)
    out.tokens.push_back(e.token), out.logprobs.push_back(e.logprob);
  return out;
}

// One request at a time, each choice by itself, nothing reused.
std::vector<Answer> alone(const Request& r, bool window) {
  static std::unique_ptr<Engine> engines[2];
  std::unique_ptr<Engine>& engine = engines[window];
  if (!engine) {
    EngineOptions o = options(1);
    o.prefix_cache = false;
    engine = make_engine(o, window);
  }
  Request plain = r;
  plain.max_backlog = 0;
  auto streams = *engine->submit_choices(plain);
  drain(*engine);
  std::vector<Answer> out;
  for (auto& s : streams) out.push_back(answer_of(*s));
  return out;
}

// A pool hardly larger than one sequence needs, several places, prompts that share beginnings.
EngineOptions cramped(int delay) {
  EngineOptions o = options(6);
  o.kv_tokens = kContext + 64;
  o.step_tokens = 40;
  o.commit_delay = delay;
  o.poison_pages = true;
  return o;
}

Request random_request(std::mt19937& rng) {
  int length = 1 + static_cast<int>(rng() % 120);
  Request r = request(static_cast<int>(rng() % 6), length, 1 + static_cast<int>(rng() % 50),
                      rng() % 2 ? 1.0 : 0.0);
  // The beginning is one of six; the end often differs.
  if (rng() % 2) r.prompt.back() = 3 + static_cast<int>(rng() % 40);
  r.sampling.set_seed(rng());
  r.logprobs = rng() % 2 == 0;
  r.choices = rng() % 4 == 0 ? 1 + static_cast<int>(rng() % 4) : 1;
  r.priority = static_cast<int>(rng() % 3) - 1;
  r.tenant = rng() % 2 ? "a" : "b";
  r.cache_salt = rng() % 8 == 0 ? "salt" : "";
  if (rng() % 4 == 0) r.max_backlog = 1 + static_cast<int>(rng() % 4);
  if (rng() % 3 == 0) {
    EXPECT_TRUE(r.sampling.set("repetition_penalty", 1.2).ok());
  }
  return r;
}

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
  for (const StepRecord& step : engine->records()) copied += step.pages_copied;
  EXPECT_EQ(shared, 5);  // 70 tokens on pages of 16, the last one partly filled
  EXPECT_EQ(copied, 3);  // the last holder writes in place
  int prefilled = 0;
  for (const StepRecord& step : engine->records()) prefilled += step.prefill_tokens;
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

TEST(Serving, AShortPromptIsNotHeldUpByALongOne) {
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
  for (const StepRecord& r : engine->records())
    if (r.prefill_tokens > 0 && r.step > 0) {
      EXPECT_GE(r.decode_tokens, 1);
      EXPECT_LE(r.prefill_tokens + r.decode_tokens, 32);
      mixed += 1;
    }
  EXPECT_GE(mixed, 6);
  EXPECT_LT(shorter->next()->at_ns, longer->next()->at_ns);
}

TEST(Serving, PriorityGoesFirst) {
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

TEST(Serving, AHigherPriorityTakesThePlaceOfALower) {
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

TEST(FairQueue, SharesTokensByWeightAndStarvesNobody) {
  FairQueue queue(100);
  Clock::time_point start = Clock::now();
  std::uint64_t id = 0;
  auto wait = [&](const char* tenant, double weight, int priority, Clock::time_point since) {
    auto s = std::make_unique<Sequence>();
    s->id = ++id;
    s->request.tenant = tenant, s->request.weight = weight, s->request.priority = priority;
    s->submitted = since;
    s->stream = std::make_shared<TokenStream>();
    queue.enter(*s);
    queue.push(std::move(s));
  };
  std::map<std::string, int> served;
  for (int i = 0; i < 40; ++i) wait("heavy", 3, 0, start), wait("light", 1, 0, start);
  for (int i = 0; i < 40; ++i) {
    Sequence* s = queue.best(start);
    queue.charge(*s, 100);
    ++served[s->request.tenant];
    queue.leave(*s);
    queue.pop(s);
  }
  EXPECT_NEAR(served["heavy"], 30, 1);
  EXPECT_NEAR(served["light"], 10, 1);
  // A newcomer does not get what others had before it came.
  wait("new", 1, 0, start);
  queue.charge(*queue.best(start), 1);
  int before_light = 0;
  for (int i = 0; i < 5; ++i) {
    Sequence* s = queue.best(start);
    before_light += s->request.tenant == "new";
    queue.charge(*s, 100);
  }
  EXPECT_LE(before_light, 2);
  // Low priority waits, but not for ever.
  FairQueue aged(10);
  std::swap(queue, aged);
  wait("a", 1, 3, start);
  wait("a", 1, 0, start + std::chrono::seconds(29));
  EXPECT_EQ(queue.best(start + std::chrono::seconds(29))->request.priority, 0);
  EXPECT_EQ(queue.best(start + std::chrono::seconds(31))->request.priority, 3);
}

TEST(Serving, TheQueueIsBounded) {
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

TEST(Serving, ADeadlineEndsWithWhatThereIs) {
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

TEST(Serving, AStalledReaderPausesAndGivesWay) {
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

TEST(Serving, StaticBatchesRunToTheirSlowestMember) {
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

TEST(Serving, EndsOnlyAfterMinTokensAndAtStopTokens) {
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

TEST(Serving, LogprobsOfPromptAndOutputAreThoseOfTheLogits) {
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

TEST(Serving, TheBooksOfAPoolAddUp) {
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

TEST(Serving, AStepAllocatesNothing) {
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

}  // namespace
}  // namespace vitrine
