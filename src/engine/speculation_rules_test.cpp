// What guesses must not change, rule by rule: each is something that went wrong in another engine. A guess may be right
// or wrong where a constraint, a budget of reasoning or the text ends; these tests bring that about at every place of a
// draft, by guesses that go on beyond the end. Answers are those without speculation: tokens, log probabilities, best
// tokens, ends and counts.
#include <set>

#include "base/json.h"
#include "engine/test_answers.h"
#include "engine/test_load.h"
#include "grammar/compiler.h"
#include "sampling/token_texts.h"

namespace vitrine {
namespace {

using namespace test;
using Kind = ConstraintSpec::Kind;

struct Outcome {
  std::vector<std::int32_t> tokens = {}, top_tokens = {};
  std::vector<std::uint32_t> logprobs = {}, shares = {}, top = {};
  FinishReason reason{};
  std::int32_t stop_token = -1;
  std::string error = {};
  int prompt_tokens = 0, completion_tokens = 0;
  bool operator==(const Outcome&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Outcome& o) {
  return out << fmt::format("{} ({}, {})", fmt::join(o.tokens, " "), finish_reason_name(o.reason),
                            o.stop_token);
}

Outcome outcome_of(TokenStream& stream) {
  std::vector<TokenEvent> events;
  std::vector<TokenLogprob> top;
  stream.read(events, top);
  const Finish& end = stream.wait();
  Outcome out{.reason = end.reason,
              .stop_token = end.stop_token,
              .error = end.error,
              .prompt_tokens = end.account.usage.prompt_tokens,
              .completion_tokens = end.account.usage.completion_tokens};
  for (const TokenEvent& e : events) {
    out.tokens.push_back(e.token);
    out.logprobs.push_back(std::bit_cast<std::uint32_t>(e.logprob));
    out.shares.push_back(std::bit_cast<std::uint32_t>(e.p));
  }
  for (const TokenLogprob& t : top)
    out.top_tokens.push_back(t.token), out.top.push_back(std::bit_cast<std::uint32_t>(t.logprob));
  return out;
}

constexpr int kGuesses = 4;

EngineOptions speculating(int sequences, SpecMode mode, int guesses = kGuesses) {
  EngineOptions o = options(sequences);
  o.spec = mode, o.spec_mib = 1, o.spec_always = true, o.spec_tokens = guesses;
  o.poison_pages = true;
  return o;
}

std::vector<Outcome> ask(Engine& engine, const Request& r) {
  auto streams = *engine.submit_choices(r);
  drain(engine);
  std::vector<Outcome> out;
  for (auto& s : streams) out.push_back(outcome_of(*s));
  return out;
}

// Without speculation, each request by itself.
std::vector<Outcome> plain(const Request& r) {
  static const auto kEngine = [] {
    EngineOptions o = options(4);
    o.prefix_cache = false;
    return make_engine(o);
  }();
  return ask(*kEngine, r);
}

// Of a request that was the last in its engine: the rows of drafts that gave the token at `position`, counted from the
// draft's beginning: 0 is the row of the last known token.
void note_place(const Engine& engine, int position, std::set<int>& places) {
  const auto records = engine.steps_since(0);
  for (auto r = records.rbegin(); r != records.rend(); ++r)
    for (const StepEntry& e : r->entries)
      if (e.phase == Phase::kDecode && e.first < position && position <= e.first + e.tokens) {
        if (e.tokens > 1) places.insert(position - 1 - e.first);
        return;
      }
}

// Tokens 0 to 2 are special, so is the last one.
std::shared_ptr<const Constraint> constraint(const ConstraintSpec& spec) {
  static ConstraintCompiler compiler([] {
    std::vector<std::string> out(3);
    for (char c : std::string_view("[]{}\":,. -0123456789abcdefilmnorstu")) out.emplace_back(1, c);
    for (const char* more : {"ab", "cde", "\",", "[\"", "null", "true"}) out.emplace_back(more);
    out.resize(kVocab);
    return out;
  }());
  auto made = compiler.compile(spec);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
  return made.ok() ? *made : nullptr;
}
std::shared_ptr<const Constraint> regex(std::string text) {
  return constraint({.kind = Kind::kRegex, .text = std::move(text)});
}
std::shared_ptr<const Constraint> schema(const std::string& text) {
  return constraint({.kind = Kind::kJsonSchema, .schema = *parse_json(text, "schema")});
}

Request reporting(Request r) {
  r.logprobs = true, r.top_logprobs = 3;
  return r;
}
// Says one token again and again.
Request stubborn(int seed, int length, int max_tokens, std::int32_t token, float bias = 100) {
  Request r = reporting(request(seed, length, max_tokens, 1));
  EXPECT_TRUE(r.sampling.set_logit_bias({{token, bias}, {kNanToken, -100}}).ok());
  return r;
}

// A text that ends after n pieces, guessed from one that goes on: at every place of a draft.
TEST(SpeculationRules, AGrammarEndsAtEveryPlaceOfADraft) {
  const auto repeated = [](int n) { return regex(fmt::format("(ab|cde){{{}}}", n)); };
  const auto array = [](int n) {
    return schema(fmt::format(
        R"({{"type":"array","items":{{"enum":["ab","cde",null,7]}},"minItems":{},"maxItems":{}}})",
        n, n));
  };
  for (const bool json : {false, true})
    for (const double temperature : {0.0, 1.0}) {
      std::set<int> places;
      for (int turn = 0; turn < 18; ++turn) {
        auto engine = make_engine(speculating(1, SpecMode::kSuffix, 1 + turn % 6));
        const auto make = [&](int n) {
          Request r = reporting(request(4 + turn / 6, 30, 150, temperature));
          r.ignore_eos = turn % 2 == 0;
          r.constraint = json ? array(n) : repeated(n);
          return r;
        };
        ask(*engine, make(28));
        for (int n = 1 + turn % 3; n < 22; n += 2) {
          const Request r = make(n);
          const Outcome got = ask(*engine, r)[0];
          EXPECT_EQ(got, plain(r)[0]) << n;
          EXPECT_EQ(got.reason, FinishReason::kStop);
          // The last token, and the row that finds that nothing may follow.
          const int end = 30 + static_cast<int>(got.tokens.size());
          for (const int position : {end - 1, end}) note_place(*engine, position, places);
        }
      }
      for (int place = 0; place <= kGuesses; ++place)
        EXPECT_TRUE(places.contains(place))
            << place << ", json " << json << ", temperature " << temperature;
    }
}

// Guesses that a grammar refuses: from what was said without it, and the other way round.
TEST(SpeculationRules, AGrammarRefusesAtEveryPlaceOfADraft) {
  auto engine = make_engine(speculating(1, SpecMode::kSuffix));
  const Request free = reporting(request(6, 30, 60, 1));
  for (int i = 0; i < 3; ++i) ask(*engine, free);
  int drafted = 0, accepted = 0;
  for (const std::string& text : {std::string("[a-u0-9 ,.:-]{20}"), std::string("[^a]{30}"),
                                  std::string("(.{3}-)*"), std::string(".{7}[0-9]{20}")}) {
    Request r = free;
    r.ignore_eos = false;
    r.constraint = regex(text);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(ask(*engine, r)[0], plain(r)[0]) << text;
      EXPECT_EQ(ask(*engine, free)[0], plain(free)[0]) << text;
    }
  }
  for (const Account& a : engine->accounts()) drafted += a.drafted, accepted += a.accepted;
  EXPECT_GT(accepted, 50);
  EXPECT_GT(drafted, accepted + 20);
}

// In a pool that is too small, beside others, with several choices.
TEST(SpeculationRules, ChangesNoConstrainedAnswer) {
  const auto form = schema(R"({"type":"object","properties":{"na":{"type":"string","maxLength":6},
      "list":{"type":"array","items":{"enum":["ab","cde",1]},"minItems":1,"maxItems":4}},
      "required":["na","list"],"additionalProperties":false})");
  const auto words = regex("((ab|cde|[0-9]{1,3}) ){2,20}\\.");
  for (const SpecMode mode : {SpecMode::kNgram, SpecMode::kSuffix}) {
    std::mt19937 rng(9);
    EngineOptions o = cramped(0);
    o.spec = mode, o.spec_mib = 1, o.spec_always = true;
    auto engine = make_engine(o);
    std::vector<std::pair<Request, std::vector<std::shared_ptr<TokenStream>>>> all;
    for (int i = 0; i < 50; ++i) {
      Request r = reporting(random_drawing(rng));
      r.max_backlog = 0;
      r.ignore_eos = i % 4 == 0;
      if (i % 3 != 0) r.constraint = i % 3 == 1 ? form : words;
      if (i % 5 == 2)
        r.reasoning = ReasoningBudget{
            .tokens = i % 7, .begin = {5}, .end = {6, 7}, .inside = true, .closing = 0};
      if (r.reasoning) r.constraint = nullptr;
      all.emplace_back(r, *engine->submit_choices(r));
      for (auto turns = rng() % 10; turns > 0; --turns) engine->step(), engine->check_integrity();
    }
    drain(*engine);
    int preemptions = 0, drafted = 0, accepted = 0;
    for (auto& [r, streams] : all) {
      const auto expected = plain(r);
      for (std::size_t c = 0; c < streams.size(); ++c) {
        EXPECT_EQ(outcome_of(*streams[c]), expected[c]);
        const Account& a = streams[c]->wait().account;
        preemptions += a.preemptions, drafted += a.drafted, accepted += a.accepted;
      }
    }
    EXPECT_GT(preemptions, 0);
    EXPECT_GT(accepted, 10);
    EXPECT_GT(drafted, accepted);
  }
}

// A budget of reasoning ends within a draft that goes on: its closing tokens are forced.
TEST(SpeculationRules, ABudgetOfReasoningEndsAtEveryPlaceOfADraft) {
  constexpr std::int32_t kSaid = 8, kFirst = 20, kSecond = 21;
  for (const bool inside : {true, false})
    for (const bool repeats : {false, true}) {
      auto engine = make_engine(speculating(1, SpecMode::kSuffix));
      ask(*engine, stubborn(1, 20, 60, kSaid));
      std::set<int> places;
      for (int budget = 0; budget < 24; ++budget) {
        Request r = stubborn(1, 20, 60, kSaid);
        r.reasoning = ReasoningBudget{.tokens = budget,
                                      .begin = {kSaid, kSaid},
                                      .end = {kFirst, kSecond},
                                      .inside = inside,
                                      .repeats = repeats};
        const Outcome got = ask(*engine, r)[0];
        EXPECT_EQ(got, plain(r)[0]) << "budget " << budget;
        const int at = budget + (inside ? 0 : 2);
        ASSERT_EQ(got.tokens[at], kFirst);
        ASSERT_EQ(got.tokens[at + 1], kSecond);
        note_place(*engine, 20 + at, places);
      }
      EXPECT_EQ(places, (std::set<int>{0, 1, 2, 3, 4}));
    }
}

// An end token that comes instead of a guess, and those that min_tokens keeps off.
TEST(SpeculationRules, NothingIsSaidOrCountedBehindAnEnd) {
  std::set<int> places;
  for (int at = 1; at < 30; ++at) {
    auto engine = make_engine(speculating(3, SpecMode::kSuffix));
    const Request whole = reporting(request(7, 40, 60, 1));
    const auto text = ask(*engine, whole)[0].tokens;
    Request r = whole;
    r.stop_token_ids = {text[at]};
    r.min_tokens = at / 2;
    r.choices = 3;
    const auto expected = plain(r);
    const auto got = ask(*engine, r);
    for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(got[c], expected[c]) << at << ", choice " << c;
    note_place(*engine, 40 + static_cast<int>(got[0].tokens.size()), places);
    const auto accounts = engine->accounts();
    for (auto a = accounts.end() - 3; a != accounts.end(); ++a) {
      const int drawn = a->timings.decode_tokens;
      EXPECT_EQ(a->timings.decode_steps + a->accepted, drawn) << "choice " << a->choice;
      EXPECT_LE(a->accepted, a->usage.completion_tokens) << "choice " << a->choice;
      const bool stopped = a->reason == FinishReason::kStop;
      EXPECT_EQ(a->usage.completion_tokens + (stopped ? 1 : 0), drawn + 1) << a->choice;
    }
  }
  EXPECT_GE(places.size(), 3u);
}

// ---- every sampler, in every row of a draft

struct Setting {
  const char* sampler;
  std::vector<std::pair<const char*, double>> values;
};
// So strong that the text is another one.
const std::vector<Setting>& settings() {
  static const std::vector<Setting> kAll = {
      {"logit_bias", {}},
      {"allowed_token_ids", {}},
      {"bad_words", {}},
      // Leaves nothing to say but the token that breaks the model: the error is told at its place.
      {"no_repeat_ngram", {{"no_repeat_ngram_size", 1}}},
      {"repetition", {{"repetition_penalty", 1.5}}},
      {"frequency_presence", {{"frequency_penalty", 1.5}, {"presence_penalty", 1}}},
      {"dry", {{"dry_multiplier", 3}, {"dry_allowed_length", 1}}},
      {"temperature", {{"temperature", 0.6}}},
      {"top_n_sigma", {{"top_n_sigma", 0.3}}},
      {"top_h", {{"top_h", 0.3}}},
      {"top_k", {{"top_k", 3}}},
      {"top_p", {{"top_p", 0.5}}},
      {"min_p", {{"min_p", 0.3}}},
      {"typical", {{"typical_p", 0.5}}},
      {"epsilon_cutoff", {{"epsilon_cutoff", 0.05}}},
      {"eta_cutoff", {{"eta_cutoff", 0.9}}},
      {"xtc", {{"xtc_probability", 0.5}, {"xtc_threshold", 0.05}}},
      {"infill", {{"infill", 1}}},
      {"adaptive_p", {{"adaptive_target", 0.3}, {"min_p", 0.02}}},
      {"mirostat", {{"mirostat", 2}, {"mirostat_tau", 2}}},
  };
  return kAll;
}

Request sampled(const Setting& setting) {
  Request r = reporting(request(12, 40, 60, 1.4));
  for (const auto& [name, value] : setting.values)
    EXPECT_TRUE(r.sampling.set(name, value).ok()) << name;
  const std::string_view name = setting.sampler;
  std::vector<std::int32_t> some;
  for (std::int32_t id = 3; id < 30; id += 2) some.push_back(id);
  if (name == "logit_bias") {
    EXPECT_TRUE(r.sampling.set_logit_bias({{9, 4}, {14, 4}, {kNanToken, -100}}).ok());
  } else if (name == "allowed_token_ids") {
    EXPECT_TRUE(r.sampling.set_allowed_ids(some).ok());
  } else if (name == "infill") {
    std::vector<std::string> texts;
    for (int id = 0; id < kVocab; ++id)
      texts.emplace_back(1 + id / 26, static_cast<char>('a' + id % 26));
    r.sampling.set_texts(std::make_shared<const TokenTexts>(texts, std::vector{kEos}));
  } else if (name == "bad_words") {
    std::vector<std::vector<std::int32_t>> words;
    for (const std::int32_t id : some) words.push_back({id});
    EXPECT_TRUE(r.sampling.set_bad_words(words).ok());
  }
  return r;
}

TEST(SpeculationRules, EverySamplerActsOnEveryRowOfADraft) {
  for (const SamplerDef* def : all_samplers())
    EXPECT_TRUE(
        std::any_of(settings().begin(), settings().end(),
                    [&](const Setting& s) { return s.sampler == std::string_view(def->name); }))
        << def->name << " has no line in the table";
  const Request without = sampled({"", {}});
  const auto other = plain(without)[0].tokens;
  for (const Setting& s : settings()) {
    const Request r = sampled(s);
    const Outcome expected = plain(r)[0];
    EXPECT_NE(expected.tokens, other) << s.sampler << " does nothing here";
    auto engine = make_engine(speculating(1, SpecMode::kSuffix));
    // Guesses of the text without it, which it must refuse, then of its own.
    ask(*engine, without);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(ask(*engine, r)[0], expected) << s.sampler << ", " << i;
    const Account last = engine->accounts().back();
    EXPECT_GT(last.accepted, 20) << s.sampler;
  }
}

// What was drawn a row before, in the same step, counts.
TEST(SpeculationRules, PenaltiesSeeTheRowsBeforeInTheirDraft) {
  for (const auto& [name, value] : {std::pair("frequency_penalty", 2.0),
                                    {"presence_penalty", 2.0},
                                    {"repetition_penalty", 3.0},
                                    {"no_repeat_ngram_size", 2.0}}) {
    const Request without = stubborn(2, 30, 60, 8, 9);
    Request r = without;
    ASSERT_TRUE(r.sampling.set(name, value).ok());
    const Outcome expected = plain(r)[0];
    EXPECT_NE(expected.tokens, plain(without)[0].tokens);
    for (const SpecMode mode : {SpecMode::kNgram, SpecMode::kSuffix}) {
      auto engine = make_engine(speculating(1, mode));
      for (int i = 0; i < 2; ++i) ask(*engine, without);
      EXPECT_EQ(ask(*engine, r)[0], expected) << name << " " << spec_mode_name(mode);
    }
  }
}

// Each its own random numbers, whoever guesses beside it.
TEST(SpeculationRules, SeedsAreNeitherMixedNorSkipped) {
  auto engine = make_engine(speculating(6, SpecMode::kSuffix));
  std::vector<Request> requests;
  for (int i = 0; i < 6; ++i) {
    Request r = reporting(request(3, 40, 40, 1));
    const int pair = i / 2;
    r.sampling.set_seed(100 + static_cast<std::uint64_t>(pair));
    r.speculative = i % 3 != 0;
    requests.push_back(r);
  }
  for (int round = 0; round < 3; ++round) {
    std::vector<std::shared_ptr<TokenStream>> streams;
    for (const Request& r : requests) streams.push_back(*engine->submit(r));
    drain(*engine);
    for (std::size_t i = 0; i < streams.size(); ++i) {
      EXPECT_EQ(outcome_of(*streams[i]), plain(requests[i])[0]) << i;
      const Account& a = streams[i]->wait().account;
      if (!requests[i].speculative) {
        EXPECT_EQ(a.drafted, 0);
      } else if (round == 2) {
        EXPECT_GT(a.accepted, 20);
      }
    }
  }
}

// Rows of wrong guesses are written behind a prompt's end, where others read.
TEST(SpeculationRules, SharedPagesStayAsTheyWere) {
  for (const int length : {31, 32, 33, 40, 47}) {
    auto engine = make_engine(speculating(4, SpecMode::kSuffix));
    Request r = reporting(request(5, length, 30, 1.2));
    r.choices = 4;
    const auto expected = plain(r);
    for (int round = 0; round < 3; ++round) EXPECT_EQ(ask(*engine, r), expected) << length;
    // Prompts that go on from the same pages, once the answers are out.
    for (const int more : {1, 3}) {
      Request longer = r;
      longer.prompt.insert(longer.prompt.end(), expected[0].tokens.begin(),
                           expected[0].tokens.begin() + more);
      EXPECT_EQ(ask(*engine, longer), plain(longer)) << length << " and " << more;
    }
    int cached = 0;
    for (const Account& a : engine->accounts()) cached += a.usage.cached_tokens;
    EXPECT_GT(cached, 0);
  }
}

TEST(SpeculationRules, APromptFromTheCacheIsGuessedFromAsWell) {
  auto engine = make_engine(speculating(1, SpecMode::kNgram));
  Request r = reporting(request(3, 70, 60, 0));
  for (std::size_t i = 6; i < r.prompt.size(); ++i) r.prompt[i] = r.prompt[i - 6];
  const Outcome expected = plain(r)[0];
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ask(*engine, r)[0], expected);
  const auto accounts = engine->accounts();
  ASSERT_EQ(accounts.size(), 2u);
  EXPECT_EQ(accounts[0].usage.cached_tokens, 0);
  EXPECT_EQ(accounts[1].usage.cached_tokens, 64);
  EXPECT_GT(accounts[0].drafted, 0);
  EXPECT_EQ(accounts[1].drafted, accounts[0].drafted);
  EXPECT_EQ(accounts[1].accepted, accounts[0].accepted);
}

// Late commits do not turn it off, and what was left to the engine is told.
TEST(SpeculationRules, WhatWasChosenIsTold) {
  EngineOptions o = options(1);
  for (const int delay : {0, 1}) {
    o.commit_delay = delay, o.spec = SpecMode::kAuto;
    auto engine = make_engine(o);
    EXPECT_NE(engine->options().spec, SpecMode::kOff);
    EXPECT_GT(engine->memory().spec_bytes, 0);
  }
}

}  // namespace
}  // namespace vitrine
