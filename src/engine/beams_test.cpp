// Beam search in the engine: what it finds, whatever else is in the batch and whatever becomes of its pages.
#include <cmath>
#include <map>
#include <set>
#include <thread>

#include "engine/test_load.h"
#include "grammar/compiler.h"
#include "sampling/chain.h"

namespace vitrine {
namespace {

using namespace test;
using Text = std::vector<std::int32_t>;

struct Found {
  Text tokens;  // with the end token
  double score = 0;
  FinishReason reason = FinishReason::kStop;
  bool operator==(const Found&) const = default;
};

Request beams_of(Request r, BeamOptions options, std::vector<std::int32_t> ends = {}) {
  r.beams = options;
  r.choices = options.returned;
  r.stop_token_ids = std::move(ends);
  EXPECT_TRUE(r.sampling.set("temperature", 1).ok());
  return r;
}

std::vector<std::int32_t> some_ends(unsigned seed, int count) {
  std::mt19937 rng(seed);
  std::set<std::int32_t> out;
  while (static_cast<int>(out.size()) < count)
    out.insert(3 + static_cast<std::int32_t>(rng() % (kVocab - 4)));
  return {out.begin(), out.end()};
}

Found found_by(TokenStream& stream) {
  Found out{.tokens = tokens_of(stream), .score = 0, .reason = FinishReason::kStop};
  const Finish& finish = stream.wait();
  if (finish.stop_token >= 0) out.tokens.push_back(finish.stop_token);
  out.score = finish.score.value_or(NAN);
  out.reason = finish.reason;
  return out;
}

std::vector<Found> run(Engine& engine, const Request& r) {
  auto streams = engine.submit_choices(r);
  EXPECT_TRUE(streams.ok()) << streams.error().message;
  std::vector<Found> out;
  if (!streams.ok()) return out;
  drain(engine);
  for (auto& s : *streams) out.push_back(found_by(*s));
  return out;
}

// The log probabilities of what may follow a text, by a request of its own.
class Rows {
 public:
  Rows(bool window, Text prompt)
      : engine_(make_engine(options(1), window)), prompt_(std::move(prompt)) {}
  const std::vector<float>& after(const Text& output) {
    auto [at, is_new] = known_.try_emplace(output);
    if (!is_new) return at->second;
    Request r;
    r.prompt = prompt_;
    r.prompt.insert(r.prompt.end(), output.begin(), output.end());
    r.max_tokens = 0;
    const int last = static_cast<int>(r.prompt.size()) - 1;
    r.logit_positions = {last};
    auto stream = *engine_->submit(r);
    drain(*engine_);
    std::vector<float> row = stream->logits().at(last);
    const LogSoftmax softmax(row, scan_logits(row));
    for (float& x : row) x = softmax.logprob(x);
    row[kNanToken] -= 100;  // the bias of all requests here
    return at->second = std::move(row);
  }

 private:
  std::unique_ptr<Engine> engine_;
  Text prompt_;
  std::map<Text, std::vector<float>> known_;
};

// Beam search as it is described, over whole rows.
std::vector<Found> naive(Rows& rows, const BeamOptions& o, const std::vector<std::int32_t>& ends,
                         int longest) {
  struct Live {
    Text tokens;
    double sum;
  };
  std::vector<Live> live{{{}, 0}};
  std::vector<Found> places;
  const auto B = static_cast<std::size_t>(o.beams);
  while (true) {
    std::vector<Live> all;
    for (const Live& l : live) {
      const std::vector<float>& row = rows.after(l.tokens);
      for (std::int32_t v = 0; v < kVocab; ++v) {
        all.push_back({l.tokens, l.sum + row[v]});
        all.back().tokens.push_back(v);
      }
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Live& a, const Live& b) { return a.sum > b.sum; });
    live.clear();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool end = std::binary_search(ends.begin(), ends.end(), all[i].tokens.back());
      const auto length = static_cast<int>(all[i].tokens.size());
      if (!end && length < longest) {
        if (live.size() < B) live.push_back(all[i]);
      } else if (i < B) {
        places.push_back({all[i].tokens, all[i].sum / std::pow(length, o.length_penalty),
                          end ? FinishReason::kStop : FinishReason::kLength});
      }
    }
    std::stable_sort(places.begin(), places.end(),
                     [](const Found& a, const Found& b) { return a.score > b.score; });
    if (places.size() > B) places.resize(B);
    if (live.empty()) break;
    if (places.size() < B) continue;
    const auto length = static_cast<double>(live[0].tokens.size());
    const bool hopes = o.early_stopping == EarlyStopping::kNever && o.length_penalty > 0;
    if (o.early_stopping == EarlyStopping::kTrue ||
        live[0].sum / std::pow(hopes ? longest : length, o.length_penalty) <= places.back().score)
      break;
  }
  places.resize(std::min(places.size(), static_cast<std::size_t>(o.returned)));
  return places;
}

TEST(EngineBeams, FindWhatANaiveSearchFinds) {
  std::mt19937 rng(1);
  int ended = 0, cut = 0;
  for (int i = 0; i < 24; ++i) {
    SCOPED_TRACE(fmt::format("case {}", i));
    const bool window = i % 2;
    const Request plain =
        request(i, 1 + static_cast<int>(rng() % 40), 4 + static_cast<int>(rng() % 20));
    const int beams = 1 + static_cast<int>(rng() % 6);
    const BeamOptions o{.beams = beams,
                        .returned = 1 + static_cast<int>(rng() % beams),
                        .length_penalty = 0.5 * static_cast<double>(rng() % 5) - 0.5,
                        .early_stopping = static_cast<EarlyStopping>(rng() % 3)};
    const auto ends = some_ends(i, static_cast<int>(rng() % 12));
    Rows rows(window, plain.prompt);
    const auto wanted = naive(rows, o, ends, *plain.max_tokens);
    for (int delay : {0, 1}) {
      EngineOptions eo = options(6);
      eo.commit_delay = delay;
      auto engine = make_engine(eo, window);
      const auto is = run(*engine, beams_of(plain, o, ends));
      ASSERT_EQ(is.size(), wanted.size());
      for (std::size_t k = 0; k < is.size(); ++k) {
        EXPECT_EQ(is[k].tokens, wanted[k].tokens) << k;
        EXPECT_DOUBLE_EQ(is[k].score, wanted[k].score) << k;
        EXPECT_EQ(is[k].reason, wanted[k].reason) << k;
        (is[k].reason == FinishReason::kStop ? ended : cut) += 1;
      }
    }
  }
  EXPECT_GT(ended, 10);
  EXPECT_GT(cut, 10);
}

// A request of beams in an engine that is short of everything, beside others, with what was found alone.
class BeamsUnderLoad : public testing::TestWithParam<std::tuple<bool, int>> {};

TEST_P(BeamsUnderLoad, FindTheSameAsAlone) {
  auto [window, delay] = GetParam();
  std::mt19937 rng(7 + window * 2 + delay);
  auto alone = make_engine(options(6), window);
  auto engine = make_engine(cramped(delay), window);
  std::vector<std::shared_ptr<TokenStream>> others;
  struct Search {
    std::vector<Found> wanted;
    std::vector<std::shared_ptr<TokenStream>> streams;
  };
  std::vector<Search> searches;
  std::map<std::tuple<int, int, int, int>, std::vector<Found>> known;
  int diverse = 0;
  for (int i = 0; i < 6000; ++i) {
    random_turn(*engine, rng, others);
    engine->check_integrity();
    if (i % 30 != 0) continue;
    const int seed = static_cast<int>(rng() % 4), length = 10 + static_cast<int>(rng() % 3) * 23;
    const int beams = 2 + static_cast<int>(rng() % 3), groups = beams == 4 && rng() % 2 ? 2 : 1;
    const BeamOptions o{.beams = beams,
                        .returned = 2,
                        .groups = groups,
                        .diversity_penalty = groups == 1 ? 0 : 0.5};
    Request r = beams_of(request(seed, length, 24), o, some_ends(seed, 4));
    auto& wanted = known[{seed, length, beams, groups}];
    if (wanted.empty()) wanted = run(*alone, r);
    r.tenant = rng() % 2 ? "a" : "b";
    if (rng() % 3 == 0) r.cache_salt = "salt";
    auto made = engine->submit_choices(r);
    if (!made.ok()) continue;  // the queue is full
    searches.push_back({wanted, *made});
    diverse += groups > 1;
  }
  for (auto& stream : others) stream->cancel();
  drain(*engine);
  int preempted = 0;
  for (Search& search : searches)
    for (std::size_t k = 0; k < search.streams.size(); ++k) {
      const Found is = found_by(*search.streams[k]);
      EXPECT_EQ(is.tokens, search.wanted[k].tokens);
      EXPECT_EQ(is.score, search.wanted[k].score);
      EXPECT_EQ(is.reason, search.wanted[k].reason);
      preempted += search.streams[k]->wait().account.preemptions;
    }
  EXPECT_GT(searches.size(), 60u);
  EXPECT_GT(diverse, 5);
  EXPECT_GT(preempted, 20);
}

INSTANTIATE_TEST_SUITE_P(All, BeamsUnderLoad,
                         testing::Combine(testing::Bool(), testing::Values(0, 1)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param) ? "Window" : "Full") +
                                  (std::get<1>(info.param) ? "Late" : "");
                         });

// Page borders, the prompt from the cache, chunks of prompts, no cache at all.
TEST(EngineBeams, DoNotDependOnPagesAndTheCache) {
  for (int length : {1, 15, 16, 17, 31, 32, 33, 50}) {
    SCOPED_TRACE(fmt::format("prompt of {}", length));
    const Request r =
        beams_of(request(3, length, 40), {.beams = 4, .returned = 4}, some_ends(2, 2));
    auto engine = make_engine(options(4));
    const auto first = run(*engine, r);
    EXPECT_EQ(run(*engine, r), first) << "from the cache";
    EngineOptions o = options(4);
    o.prefix_cache = false, o.step_tokens = 7, o.poison_pages = true;
    auto other = make_engine(o);
    EXPECT_EQ(run(*other, r), first) << "in chunks";
  }
}

// Several beams share what they have in common, and give all back.
TEST(EngineBeams, ShareTheirPages) {
  auto engine = make_engine(options(4));
  auto streams =
      *engine->submit_choices(beams_of(request(1, 100, 60), {.beams = 4, .returned = 1}));
  int most = 0, copied = 0, moved = 0;
  std::set<std::uint64_t> ids;
  while (engine->step()) {
    engine->check_integrity();
    most = std::max(most, engine->pages_used()[0]);
    for (const SequenceStats& s : engine->snapshot().running) {
      EXPECT_EQ(s.account.beam_of, streams[0]->id());
      ids.insert(s.account.id);
    }
  }
  for (const StepRecord& r : engine->steps_since(0)) {
    copied += r.pages_copied;
    EXPECT_EQ(r.beam_rows, r.prefill_tokens + r.decode_tokens);
    for (const BeamChange& b : r.beams) moved += b.from != 0 && b.from != b.sequence;
  }
  EXPECT_EQ(ids.size(), 4u);
  EXPECT_GT(moved, 3);
  EXPECT_GT(copied, 3);
  // 100 tokens are 7 pages, 160 are 10: four of their own after the sixth.
  EXPECT_LE(most, 6 + 4 * 4);
  EXPECT_EQ(engine->pages_used()[0], 0);
}

TEST(EngineBeams, EndAtEveryStep) {
  for (int delay : {0, 1})
    for (bool stop : {false, true})
      for (int after = 0; after < 14; ++after) {
        EngineOptions o = options(4);
        o.commit_delay = delay, o.step_tokens = 20;
        auto engine = make_engine(o);
        auto streams =
            *engine->submit_choices(beams_of(request(1, 50, 20), {.beams = 3, .returned = 2}));
        for (int i = 0; i < after; ++i) engine->step();
        for (auto& s : streams) stop ? s->stop() : s->cancel();
        drain(*engine);
        EXPECT_TRUE(engine->idle());
        for (auto& s : streams)
          EXPECT_EQ(s->wait().reason, stop ? FinishReason::kStop : FinishReason::kCancelled);
        EXPECT_EQ(engine->accounts().size(), 3u);
      }
}

// One reader that wants no more does not end what the other waits for.
TEST(EngineBeams, GoOnForTheReadersThatAreLeft) {
  auto engine = make_engine(options(4));
  const Request r = beams_of(request(1, 20, 12), {.beams = 3, .returned = 2});
  const auto wanted = run(*engine, r);
  auto streams = *engine->submit_choices(r);
  for (int i = 0; i < 4; ++i) engine->step();
  streams[0]->stop();
  drain(*engine);
  EXPECT_EQ(found_by(*streams[1]), wanted[1]);
}

TEST(EngineBeams, StreamWhatAllTextsBeginWith) {
  int early = 0;
  for (int seed = 0; seed < 12; ++seed) {
    auto engine = make_engine(options(4));
    auto streams =
        *engine->submit_choices(beams_of(request(seed, 20, 40), {.beams = 3, .returned = 2}));
    std::vector<TokenEvent> events[2];
    std::vector<TokenLogprob> top;
    while (engine->step())
      for (int i = 0; i < 2; ++i) {
        const bool over = streams[i]->read(events[i], top);
        if (!over && i == 1) {
          early = std::max(early, static_cast<int>(events[1].size()));
          ASSERT_EQ(events[0].size(), events[1].size());
        }
      }
    for (int i = 0; i < 2; ++i) {
      streams[i]->read(events[i], top);
      EXPECT_EQ(events[i].size(), 40u);
      EXPECT_EQ(streams[i]->wait().account.usage.completion_tokens, 40);
    }
    bool differ = false;
    for (std::size_t k = 0; k < 40; ++k) differ |= events[0][k].token != events[1][k].token;
    EXPECT_TRUE(differ) << "two texts are two";
  }
  EXPECT_GT(early, 5);
}

TEST(EngineBeams, AreHeldAndTimeOutWithTheBestSoFar) {
  auto engine = make_engine(options(4));
  Request r = beams_of(request(4, 20, 40), {.beams = 3, .returned = 2});
  const auto wanted = run(*engine, r);
  r.allow = 3;
  auto streams = *engine->submit_choices(r);
  for (int i = 0; i < 100; ++i) engine->step();
  EXPECT_FALSE(streams[0]->finished());
  EXPECT_TRUE(streams[0]->held());
  EXPECT_EQ(streams[0]->drawn(), 3);
  EXPECT_TRUE(engine->snapshot().running.empty() ||
              engine->snapshot().running[0].state == SequenceState::kPaused);
  for (auto& s : streams) s->release();
  drain(*engine);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(found_by(*streams[i]), wanted[i]);

  r.allow.reset();
  r.timeout = std::chrono::milliseconds(40);
  r.max_backlog = 0;
  streams = *engine->submit_choices(r);
  for (int i = 0; i < 6; ++i) engine->step();
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  drain(*engine);
  const Found best = found_by(*streams[0]);
  EXPECT_EQ(best.reason, FinishReason::kTimeout);
  EXPECT_GT(best.tokens.size(), 3u);
  EXPECT_LT(best.tokens.size(), 40u);
  EXPECT_GE(best.score, found_by(*streams[1]).score);
}

TEST(EngineBeams, EndWhereTheContextDoes) {
  auto engine = make_engine(options(3));
  Request r = beams_of(request(5, kContext - 6, 0), {.beams = 3, .returned = 3});
  r.max_tokens.reset();
  for (const Found& f : run(*engine, r)) {
    EXPECT_EQ(f.tokens.size(), 6u);
    EXPECT_EQ(f.reason, FinishReason::kLength);
  }
}

// ---- under a constraint

const std::vector<std::string>& pieces() {
  static const std::vector<std::string> kAll = [] {
    std::vector<std::string> out(3);
    for (char c = 'a'; c <= 'z'; ++c) out.emplace_back(1, c);
    for (const char* more : {"ab", "bc", "abc", "ca"}) out.emplace_back(more);
    out.resize(kVocab);
    return out;
  }();
  return kAll;
}

std::string text_of(const Text& tokens) {
  std::string out;
  for (std::int32_t t : tokens) out += pieces()[t];
  return out;
}

TEST(EngineBeams, EachFollowsTheGrammarByItself) {
  ConstraintCompiler compiler(pieces());
  auto engine = make_engine(options(4));
  // Texts that must end differ from those that may go on.
  Request r = beams_of(request(1, 10, 30), {.beams = 4, .returned = 4});
  r.ignore_eos = false;
  r.constraint =
      *compiler.compile({.kind = ConstraintSpec::Kind::kRegex, .text = "(ab|b[a-c]{2}|cab){2,3}"});
  const auto all = run(*engine, r);
  ASSERT_EQ(all.size(), 4u);
  std::set<Text> different;
  for (const Found& f : all) {
    Text tokens = f.tokens;
    if (!tokens.empty() && tokens.back() == kEos) tokens.pop_back();
    EXPECT_EQ(f.reason, FinishReason::kStop);
    ConstraintMatcher matcher(r.constraint);
    EXPECT_TRUE(matcher.accept_text(text_of(tokens)) && matcher.may_end()) << text_of(tokens);
    different.insert(f.tokens);
  }
  EXPECT_EQ(different.size(), 4u);
  for (std::size_t k = 1; k < all.size(); ++k) EXPECT_GE(all[k - 1].score, all[k].score);

  // Fewer texts than beams: what there is, and nothing for the others.
  r.constraint = *compiler.compile({.kind = ConstraintSpec::Kind::kChoice, .choices = {"q", "z"}});
  const auto two = run(*engine, r);
  std::set<std::string> texts;
  for (int k = 0; k < 2; ++k) {
    Text tokens = two[k].tokens;
    if (tokens.back() == kEos) tokens.pop_back();
    texts.insert(text_of(tokens));
  }
  EXPECT_EQ(texts, (std::set<std::string>{"q", "z"}));
  EXPECT_TRUE(two[2].tokens.empty() && std::isnan(two[2].score));
}

// ---- what is refused

TEST(EngineBeams, AreRefusedByName) {
  EngineOptions o = options(4);
  o.kv_tokens = 320;
  auto engine = make_engine(o);
  const Request good = beams_of(request(1, 20, 8), {.beams = 4, .returned = 2});
  ASSERT_TRUE(engine->submit_choices(good).ok());
  const auto message = [&](auto change) {
    Request r = good;
    change(r);
    auto made = engine->submit_choices(r);
    return made.ok() ? std::string("allowed") : made.error().message;
  };
  EXPECT_EQ(message([](Request& r) { r.beams->beams = 5; }),
            "beams: found 5, allowed 1 to 4: so many sequences run at once");
  EXPECT_EQ(message([](Request& r) { r.beams->returned = r.choices = 5; }),
            "num_return: found 5, allowed 1 to 4");
  EXPECT_EQ(message([](Request& r) { r.choices = 3; }), "choices: found 3, allowed 2 to 2");
  for (const auto& [name, change] : std::map<std::string, std::function<void(Request&)>>{
           {"logprobs", [](Request& r) { r.logprobs = true; }},
           {"prompt_logprobs", [](Request& r) { r.prompt_logprobs = true; }},
           {"begun", [](Request& r) { r.begun = {3}; }},
           {"repetition_detection",
            [](Request& r) {
              r.repetition = RepetitionEnd{1, 2, 2};
            }},
           {"max_tokens", [](Request& r) { r.max_tokens = 0; }},
           {"temperature", [](Request& r) { (void)r.sampling.set("temperature", 0.5); }},
           {"mirostat", [](Request& r) { (void)r.sampling.set("mirostat", 2); }}})
    EXPECT_EQ(message(change).rfind(name + ":", 0), 0u) << name << ": " << message(change);
  EXPECT_EQ(message([](Request& r) { r.max_tokens = 200; }),
            "beams: 4 of 200 tokens after a prompt of 20 need 53 pages of the cache, which has 20; "
            "fewer beams or a smaller max_tokens need less");
  drain(*engine);
}

// A model that gives NaN fails the request, not the engine.
TEST(EngineBeams, FailTogether) {
  auto engine = make_engine(options(4));
  Request r = beams_of(request(1, 20, 8), {.beams = 3, .returned = 2});
  r.prompt.back() = kNanToken;
  auto streams = *engine->submit_choices(r);
  drain(*engine);
  for (auto& s : streams) EXPECT_EQ(s->wait().reason, FinishReason::kError);
  EXPECT_TRUE(engine->idle());
}

}  // namespace
}  // namespace vitrine
