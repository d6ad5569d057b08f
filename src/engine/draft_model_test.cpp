// A draft model on against off: the same tokens, log probabilities, ends and usage, whatever the draft is, and
// whatever happens around a request. And that a draft that agrees saves steps.
#include "engine/draft_model.h"

#include <map>

#include "engine/test_answers.h"
#include "engine/test_load.h"
#include "grammar/compiler.h"
#include "support/allocation_count.h"

namespace vitrine {
namespace {

using namespace test;

// Drafts of the tiny model: itself, one that knows nothing of it, one of a window, one that knows fewer
// tokens and positions, one that knows more.
enum class Kind { kSame, kOther, kWindow, kSmall, kLarge };

std::shared_ptr<const ModelFile> draft_file(Kind kind, bool window) {
  if (kind == Kind::kSame) return model(window);
  TinyLlama m{.vocab = kVocab, .context = kContext, .eos = kEos, .kv_heads = 2, .seed = 23};
  if (kind == Kind::kWindow) m.window = 24;
  if (kind == Kind::kSmall) m.vocab = 40, m.context = 96;
  if (kind == Kind::kLarge) m.vocab = 90;
  return make_tiny_llama(m);
}

EngineOptions drafting(EngineOptions o, Kind kind, bool window = false, int guesses = 8) {
  o.spec = SpecMode::kDraft, o.spec_always = true;
  o.spec_tokens = guesses;
  o.draft.file = draft_file(kind, window);
  return o;
}

struct Sums {
  int drafted = 0, accepted = 0;
};

Sums sums_of(const Engine& engine) {
  Sums out;
  for (const StepRecord& r : engine.steps_since(0))
    out.drafted += r.drafted, out.accepted += r.accepted;
  return out;
}

void set(Request& r, const char* name, double value) {
  EXPECT_TRUE(r.sampling.set(name, value).ok()) << name;
}

class DraftModels : public testing::TestWithParam<std::tuple<bool, Kind>> {};

// A pool hardly larger than one sequence needs, so that sequences are preempted; forks, page borders, readers
// that are slow.
TEST_P(DraftModels, ChangeNoAnswer) {
  const auto [window, kind] = GetParam();
  std::mt19937 rng(17);
  auto engine = make_engine(drafting(cramped(0), kind, window), window);
  std::vector<std::shared_ptr<TokenStream>> streams;
  std::vector<Request> requests;
  std::vector<int> choices;
  for (int i = 0; i < 60; ++i) {
    Request r = random_drawing(rng);
    set(r, "temperature", std::array{0.0, 0.3, 0.7, 1.0, 1.5}[i % 5]);
    static constexpr std::pair<const char*, double> kMore[] = {{"dry_multiplier", 0.8},
                                                               {"mirostat", 2},
                                                               {"no_repeat_ngram_size", 3},
                                                               {"top_k", 5},
                                                               {"top_p", 0.8},
                                                               {"min_p", 0.1},
                                                               {"typical_p", 0.9},
                                                               {"xtc_probability", 0.5}};
    if (i % 2 == 1)
      set(r, kMore[i / 2 % std::size(kMore)].first, kMore[i / 2 % std::size(kMore)].second);
    r.ignore_eos = i % 4 != 0;
    r.min_tokens = i % 7 == 0 ? std::min(10, *r.max_tokens) : 0;
    r.max_backlog = 0;
    if (kind == Kind::kSmall && i % 2 == 0)
      for (std::int32_t& id : r.prompt) id = 3 + id % 30;
    auto made = *engine->submit_choices(r);
    for (int c = 0; c < static_cast<int>(made.size()); ++c) {
      streams.push_back(made[c]);
      requests.push_back(r);
      choices.push_back(c);
    }
    for (auto turns = rng() % 6; turns > 0; --turns) engine->step(), engine->check_integrity();
  }
  drain(*engine);
  engine->check_integrity();
  const Sums sums = sums_of(*engine);
  EXPECT_GT(sums.drafted, kind == Kind::kSmall ? 20 : 100);
  EXPECT_GT(engine->metrics().preemptions, 0u);
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

INSTANTIATE_TEST_SUITE_P(All, DraftModels,
                         testing::Combine(testing::Bool(),
                                          testing::Values(Kind::kSame, Kind::kOther, Kind::kWindow,
                                                          Kind::kSmall, Kind::kLarge)));

// The target as its own draft draws with the same noise from the same logits.
TEST(DraftModel, ThatAgreesIsAlwaysRight) {
  for (const bool window : {false, true})
    for (const double temperature : {0.0, 0.3, 0.7, 1.0, 1.5})
      for (const int k : {1, 2, 3, 7, 15}) {
        Request r = request(5, 45, 64, temperature);
        set(r, "top_p", 0.9);
        r.logprobs = true, r.choices = k == 3 ? 3 : 1;
        auto engine = make_engine(drafting(options(3), Kind::kSame, window, k), window);
        auto streams = *engine->submit_choices(r);
        drain(*engine);
        const auto expected = alone(r, window);
        for (std::size_t c = 0; c < streams.size(); ++c) {
          EXPECT_EQ(answer_of(*streams[c]), expected[c]);
          const Account& a = streams[c]->wait().account;
          EXPECT_EQ(a.drafted, a.accepted) << "temperature " << temperature << ", " << k;
          EXPECT_LE(a.timings.decode_steps, (63 + k) / (k + 1) + 1);
          EXPECT_GT(a.drafted, 0);
        }
      }
}

// With penalties the draft does not see its own guesses: some are wrong, most are right, the answer is the same.
TEST(DraftModel, PenaltiesAndStatesCostAcceptanceOnly) {
  for (const char* name :
       {"repetition_penalty", "presence_penalty", "mirostat", "adaptive_target"}) {
    Request r = request(5, 45, 64, 0.8);
    set(r, name,
        std::string_view(name) == "mirostat"          ? 2
        : std::string_view(name) == "adaptive_target" ? 0.5
                                                      : 1.2);
    auto engine = make_engine(drafting(options(1), Kind::kSame));
    auto stream = *engine->submit(r);
    drain(*engine);
    EXPECT_EQ(answer_of(*stream), alone(r, false)[0]) << name;
    EXPECT_GT(stream->wait().account.accepted, 15) << name;
  }
}

// A second sequence with the same prompt computes nothing twice; what is in the cache is right.
TEST(DraftModel, HasAPrefixCacheOfItsOwn) {
  for (const bool window : {false, true}) {
    EngineOptions o = drafting(options(2), Kind::kSame, window);
    o.poison_pages = true;
    auto engine = make_engine(o, window);
    for (int i = 0; i < 3; ++i) {
      Request r = request(7, 120, 40, 0.8);
      r.sampling.set_seed(static_cast<std::uint64_t>(i));
      auto stream = *engine->submit(r);
      drain(*engine);
      EXPECT_EQ(answer_of(*stream), alone(r, window)[0]);
      const Account& a = stream->wait().account;
      EXPECT_EQ(a.drafted, a.accepted) << "warm as cold";
      EXPECT_LT(a.timings.decode_steps, 8);
    }
  }
}

// With a token that it does not know nothing is guessed, and never one that the target does not have.
TEST(DraftModel, IdsThatAreNotSharedAreLeftAlone) {
  auto engine = make_engine(drafting(options(1), Kind::kSmall));
  Request r = request(5, 30, 30, 1);
  r.prompt[20] = 45;
  auto stream = *engine->submit(r);
  drain(*engine);
  EXPECT_EQ(answer_of(*stream), alone(r, false)[0]);
  EXPECT_EQ(stream->wait().account.drafted, 0);
  for (std::int32_t& id : r.prompt) id = 3 + id % 30;
  stream = *engine->submit(r);
  drain(*engine);
  EXPECT_EQ(answer_of(*stream), alone(r, false)[0]);
  EXPECT_GT(stream->wait().account.drafted, 0);
}

// Longer than the draft model's context.
TEST(DraftModel, StopsWhereItsContextEnds) {
  auto engine = make_engine(drafting(options(1), Kind::kSmall));
  EXPECT_EQ(engine->memory().draft.front().context, 96);
  Request r = request(5, 60, 120, 0);
  for (std::int32_t& id : r.prompt) id = 3 + id % 30;
  std::vector<LogitBias> bias{{kNanToken, -100}};
  for (std::int32_t id = 40; id < kNanToken; ++id) bias.push_back({id, -100});
  EXPECT_TRUE(r.sampling.set_logit_bias(bias).ok());
  auto stream = *engine->submit(r);
  drain(*engine);
  EXPECT_EQ(answer_of(*stream), alone(r, false)[0]);
  const Account& a = stream->wait().account;
  EXPECT_GT(a.drafted, 0);
  EXPECT_EQ(a.usage.completion_tokens, 120);
  int last = 0;
  for (const StepRecord& record : engine->steps_since(0))
    if (record.drafted > 0) last = record.entries[0].first + record.entries[0].tokens - 1;
  EXPECT_LE(last, 96);
  EXPECT_GT(last, 90);
}

TEST(DraftModel, EndsWhereItEndedWithout) {
  for (int most = 1; most < 20; ++most) {
    Request r = request(3, 40, most, 0.8);
    auto engine = make_engine(drafting(options(1), Kind::kSame));
    auto stream = *engine->submit(r);
    drain(*engine);
    EXPECT_EQ(stream->wait().reason, FinishReason::kLength);
    EXPECT_EQ(answer_of(*stream), alone(r, false)[0]);
  }
  const Answer text = alone(request(3, 40, 30, 0.8), false)[0];
  for (std::size_t at = 1; at < 20; ++at) {
    Request r = request(3, 40, 30, 0.8);
    r.stop_token_ids = {text.tokens[at]};
    const Answer expected = alone(r, false)[0];
    auto engine = make_engine(drafting(options(1), Kind::kSame));
    auto stream = *engine->submit(r);
    drain(*engine);
    EXPECT_EQ(answer_of(*stream), expected);
    EXPECT_EQ(stream->wait().stop_token, text.tokens[at]);
  }
}

TEST(DraftModel, StepsAllocateNothing) {
  EngineOptions o = drafting(options(4), Kind::kOther, true);
  o.threads = 1, o.step_tokens = 64;
  auto engine = make_engine(o, true);
  std::vector<std::shared_ptr<TokenStream>> streams;
  for (int i = 0; i < 4; ++i) {
    Request r = request(i, 60, 150, 0.5);
    r.logprobs = true, r.top_logprobs = 5;
    set(r, "repetition_penalty", 1.1);
    streams.push_back(*engine->submit(r));
  }
  std::vector<TokenEvent> events;
  std::vector<TokenLogprob> top;
  events.reserve(1000), top.reserve(5000);
  for (int i = 0; i < 12; ++i) engine->step();
  const std::size_t before = allocation_count();
  for (int i = 0; i < 12; ++i) {
    engine->step();
    for (auto& s : streams) s->read(events, top);
  }
  EXPECT_EQ(allocation_count(), before);
  EXPECT_GT(engine->metrics().drafted_tokens, 100u);
  drain(*engine);
}

TEST(DraftModel, BooksAgree) {
  auto engine = make_engine(drafting(options(3), Kind::kSame));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(engine->submit(request(i, 50, 40, 0.5)).ok());
  drain(*engine);
  SourceShare all;
  for (const StepRecord& r : engine->steps_since(0)) {
    SourceShare by;
    for (const SourceShare& share : r.by_source)
      if (share.source == GuessSource::kDraft) by = share;
    EXPECT_EQ(by.drafted, r.drafted);
    EXPECT_EQ(by.accepted, r.accepted);
    EXPECT_LE(by.draft_ns, r.draft_ns);
    EXPECT_LE(r.draft_ns, r.plan_ns);
    all.drafts += by.drafts, all.drafted += by.drafted, all.accepted += by.accepted;
  }
  const Metrics m = engine->metrics();
  const Metrics::Guesses& by = m.by_source[static_cast<int>(GuessSource::kDraft)];
  EXPECT_EQ(by.drafts, m.drafts);
  EXPECT_EQ(by.drafted, m.drafted_tokens);
  EXPECT_EQ(by.drafts, static_cast<std::uint64_t>(all.drafts));
  EXPECT_EQ(by.drafted, static_cast<std::uint64_t>(all.drafted));
  EXPECT_EQ(by.accepted, static_cast<std::uint64_t>(all.accepted));
  EXPECT_GT(by.seconds, 0);
  int drafts = 0;
  for (const Account& a : engine->accounts()) drafts += a.drafts;
  EXPECT_EQ(drafts, all.drafts);
}

TEST(DraftModel, IsInThePlan) {
  EngineOptions o = drafting(options(4), Kind::kOther);
  auto engine = make_engine(o);
  const MemoryPlan& plan = engine->memory();
  ASSERT_EQ(plan.draft.size(), 1u);
  EXPECT_GT(plan.draft[0].kv_bytes, 0);
  EXPECT_EQ(plan.draft[0].sequences, 4);
  EXPECT_EQ(plan.total(),
            plan.packed_bytes + plan.kv_bytes + plan.activation_bytes + plan.draft[0].total());
  o.sequences = 200;
  EXPECT_EQ(make_engine(o)->memory().draft[0].sequences, DraftModel::kMostSeats);
  // Off, it is not loaded.
  o.spec = SpecMode::kSuffix;
  EXPECT_TRUE(make_engine(o)->memory().draft.empty());
}

TEST(DraftModel, IsAskedFor) {
  EngineOptions o = options(1);
  o.spec = SpecMode::kDraft;
  auto engine = Engine::create(model(false), o);
  ASSERT_FALSE(engine.ok());
  EXPECT_NE(engine.error().message.find("without a draft model"), std::string::npos);
}

// A pool so small that not all sequences find pages: they take turns, and nobody waits for them.
TEST(DraftModel, TakesTurnsWhereItsPagesAreFew) {
  EngineOptions o = drafting(options(4), Kind::kSame);
  o.kv_tokens = 4 * 160;
  o.prefix_cache = false;
  o.draft.file = make_tiny_llama(
      {.vocab = kVocab, .context = kContext, .eos = kEos, .kv_heads = 2, .seed = 11});
  auto engine = make_engine(o);
  std::vector<std::shared_ptr<TokenStream>> streams;
  std::vector<Request> requests;
  for (int i = 0; i < 6; ++i) {
    requests.push_back(request(i, 90, 100, 0.7));
    streams.push_back(*engine->submit(requests.back()));
  }
  drain(*engine);
  for (std::size_t i = 0; i < streams.size(); ++i)
    EXPECT_EQ(answer_of(*streams[i]), alone(requests[i], false)[0]);
}

// Beside a draft model, `auto` has texts; the one that promises more guesses.
TEST(DraftModel, GuessesBesideTexts) {
  EngineOptions o = drafting(options(2), Kind::kOther);
  o.spec = SpecMode::kAuto, o.spec_mib = 1;
  auto engine = make_engine(o);
  std::vector<Request> requests;
  std::vector<std::shared_ptr<TokenStream>> streams;
  for (int i = 0; i < 6; ++i) {
    Request r = request(i, 60, 80, 0);
    if (i % 2) {
      EXPECT_TRUE(r.sampling.set_logit_bias({{7, 100}, {kNanToken, -100}}).ok());
    }
    requests.push_back(r);
    streams.push_back(*engine->submit(r));
  }
  drain(*engine);
  for (std::size_t i = 0; i < streams.size(); ++i)
    EXPECT_EQ(answer_of(*streams[i]), alone(requests[i], false)[0]);
  const Metrics m = engine->metrics();
  EXPECT_GT(m.by_source[static_cast<int>(GuessSource::kSuffix)].accepted, 50u);
  EXPECT_GT(m.by_source[static_cast<int>(GuessSource::kDraft)].drafted, 50u);
}

// Another thread may hold a sequence at any time, also between two sources that guess for it.
TEST(DraftModel, AReaderMayHoldWhileGuessesAreMade) {
  struct Holds : DraftSource {
    TokenStream*& stream;
    int calls = 0;
    explicit Holds(TokenStream*& s) : stream(s) {}
    void begin(std::string_view) override {}
    void extend(std::span<const std::int32_t>) override {}
    int draft(std::span<const std::int32_t>, std::span<Guess>) override {
      if (stream != nullptr && ++calls % 2 == 0) stream->allow(0);
      return 0;
    }
    std::size_t bytes() const override { return 0; }
  };
  TokenStream* held = nullptr;
  EngineOptions o = drafting(options(1), Kind::kOther);
  o.spec = SpecMode::kAuto, o.spec_mib = 1;
  o.spec_source = [&held] { return std::make_unique<Holds>(held); };
  auto engine = make_engine(o);
  const Request r = request(5, 20, 40, 0);
  auto stream = *engine->submit(r);
  held = stream.get();
  for (int i = 0; i < 2000 && !stream->finished(); ++i) {
    engine->step(), engine->check_integrity();
    if (i % 3 == 0) stream->allow(3);
  }
  ASSERT_TRUE(stream->finished());
  EXPECT_EQ(answer_of(*stream), alone(r, false)[0]);
}

// What the caller expects is guessed first, and counted by itself.
TEST(Predictions, SaveStepsAndChangeNoAnswer) {
  const Request plain = request(9, 40, 60, 1);
  const Answer expected = alone(plain, false)[0];
  for (const SpecMode mode :
       {SpecMode::kNgram, SpecMode::kSuffix, SpecMode::kDraft, SpecMode::kOff}) {
    EngineOptions o = drafting(options(1), Kind::kOther);
    o.spec = mode, o.spec_mib = 1;
    auto engine = make_engine(o);
    for (const bool right : {true, false}) {
      auto text = std::make_shared<std::vector<std::int32_t>>(expected.tokens);
      // An edit in the middle.
      (*text)[30] = 5, (*text)[31] = 6;
      if (!right) std::fill(text->begin() + 3, text->end(), 4);
      Request r = plain;
      r.prediction = text;
      auto stream = *engine->submit(r);
      drain(*engine);
      EXPECT_EQ(answer_of(*stream), expected);
      const Account& a = stream->wait().account;
      EXPECT_GE(a.predicted, a.predicted_accepted);
      EXPECT_GE(a.drafted, a.predicted);
      if (mode == SpecMode::kOff) {
        EXPECT_EQ(a.predicted, 0);
      } else if (right) {
        EXPECT_GT(a.predicted_accepted, 40);
        EXPECT_LT(a.timings.decode_steps, 20);
      } else {
        EXPECT_GT(a.predicted, 0);
        EXPECT_LT(a.predicted_accepted, 5);
      }
    }
  }
}

}  // namespace
}  // namespace vitrine
