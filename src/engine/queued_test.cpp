// The engine on a device that queues its work, as cuda does, without one: a backend that computes at
// once but hands results over only when they are waited for.
#include <cstring>
#include <map>

#include "draft/simulated.h"
#include "engine/test_answers.h"
#include "engine/test_load.h"
#include "engine/test_parts.h"
#include "kernels/ref/backend.h"

namespace vitrine {
namespace {

using namespace test;

class QueueingBackend final : public ref::RefBackend {
 public:
  bool asynchronous() const override { return true; }
  void begin_step(std::uint64_t, bool) override {
    ticket_ = (ticket_ + 1) % kStepsInFlight;
    idle_ += out_++ == 0;
  }
  int end_step() override { return ticket_; }
  StepTimes wait(int ticket) override {
    --out_;
    for (auto& result : results_[ticket]) result();
    results_[ticket].clear();
    return {};
  }
  void read_later(void* to, const void* from, std::int64_t bytes) override {
    std::vector<std::byte> data(static_cast<std::size_t>(bytes));
    std::memcpy(data.data(), from, data.size());
    results_[ticket_].push_back(
        [to, data = std::move(data)] { std::memcpy(to, data.data(), data.size()); });
  }
  int repeats() const { return repeats_; }
  int idle() const { return idle_; }  // steps before which it had nothing to do
  int drawn() const { return drawn_; }

 protected:
  void feed_from_(Tensor last) override { last_ = last; }
  void embed_(Tensor out, const Weight& table, Tensor ids, float scale) override {
    note({ids.data, out.data});
    std::vector<std::int32_t> known(ids.i32(), ids.i32() + ids.dim(0));
    for (std::int32_t& id : known)
      if (id < 0) id = last_.i32()[-1 - id];
    RefBackend::embed_(out, table, {known.data(), DType::kI32, ids.shape}, scale);
  }
  void draw_(DrawnRow* drawn, Tensor last, const DrawRow* rows, Tensor logits,
             bool greedy) override {
    note({drawn, last.data, rows, logits.data});
    std::vector<DrawnRow> results(static_cast<std::size_t>(logits.dim(0)));
    RefBackend::draw_(results.data(), last, rows, logits, greedy);
    for (std::int64_t m = 0; m < logits.dim(0); ++m) {
      if (rows[m].slot < 0) continue;
      EXPECT_TRUE(!greedy || rows[m].top_k == 1);
      results_[ticket_].push_back([to = drawn + m, result = results[m]] { *to = result; });
      ++drawn_;
    }
  }
  // The same key promises the same calls on the same memory, which a recording would replay.
  void repeat_(std::uint64_t key, const std::function<void()>& calls) override {
    notes_.clear();
    calls();
    auto [at, first] = recorded_.try_emplace(key, notes_);
    if (!first) {
      EXPECT_EQ(at->second, notes_);
      ++repeats_;
    }
  }

 private:
  void note(std::initializer_list<const void*> pointers) { notes_.insert(notes_.end(), pointers); }

  Tensor last_;
  int ticket_ = 0, repeats_ = 0, drawn_ = 0, out_ = 0, idle_ = 0;
  std::vector<std::function<void()>> results_[kStepsInFlight];
  std::vector<const void*> notes_;
  std::map<std::uint64_t, std::vector<const void*>> recorded_;
};

EngineOptions queued(int sequences) {
  EngineOptions o = options(sequences);
  o.commit_delay = -1;  // one step late, because steps are queued
  o.kv_dtype = DType::kF32;
  return o;
}

std::unique_ptr<LoadedModel> load_queued(const EngineOptions& o, bool window) {
  return std::move(load_onto(std::make_unique<QueueingBackend>(), model(window), o)).value();
}

// What ref gives, one request at a time, every step committed at once.
std::vector<Answer> on_ref(const Request& r, bool window) {
  EngineOptions o = options(1);
  o.backend = "ref", o.kv_dtype = DType::kF32, o.prefix_cache = false;
  auto engine = make_engine(o, window);
  auto streams = *engine->submit_choices(r);
  drain(*engine);
  std::vector<Answer> out;
  for (auto& s : streams) out.push_back(answer_of(*s));
  return out;
}

// Drawn on the device (greedy, top_k, top_p, min_p), on the host (log probabilities, penalties, a
// ban), with several choices, with logits asked for.
std::vector<Request> every_kind() {
  std::vector<Request> out;
  for (int i = 0; i < 12; ++i) {
    Request r = request(i, 5 + 9 * i, 12 + i, i % 3 == 0 ? 0 : 1);
    // A bias would make all of them the host's.
    EXPECT_TRUE(r.sampling.set_logit_bias({}).ok());
    auto set = [&](const char* name, double value) {
      EXPECT_TRUE(r.sampling.set(name, value).ok());
    };
    if (i % 4 == 1) set("top_p", 0.8), set("top_k", 20);
    if (i % 4 == 2) set("min_p", 0.05);
    if (i == 3) r.logprobs = true;
    if (i == 5) set("repetition_penalty", 1.3);
    if (i == 6) r.choices = 3;
    if (i == 7) r.logit_positions = {2, 10, 67};
    if (i == 8) r.min_tokens = 6, r.ignore_eos = false;
    if (i == 10) r.ignore_eos = false;
    out.push_back(r);
  }
  return out;
}

class Queued : public testing::TestWithParam<bool> {};

TEST_P(Queued, GivesTheTokensOfRef) {
  const bool window = GetParam();
  EngineOptions o = queued(6);
  o.step_tokens = 48;
  EngineParts engine(load_queued(o, window));
  EXPECT_EQ(engine.loaded().options.commit_delay, 1);
  std::vector<Request> requests = every_kind();
  std::vector<std::vector<std::shared_ptr<TokenStream>>> streams;
  for (const Request& r : requests) {
    Sequence* s = engine.add(r);
    streams.push_back({s->stream});
    for (auto& f : s->forks) streams.back().push_back(f->stream);
  }
  while (engine.step()) continue;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    std::vector<Answer> expected = on_ref(requests[i], window);
    ASSERT_EQ(streams[i].size(), expected.size());
    for (std::size_t c = 0; c < expected.size(); ++c)
      EXPECT_EQ(answer_of(*streams[i][c]), expected[c]) << "request " << i << " choice " << c;
  }
  EXPECT_EQ(streams[7][0]->logits().size(), 3u);
  auto& backend = dynamic_cast<QueueingBackend&>(*engine.loaded().backend);
  EXPECT_GT(backend.repeats(), 5) << "no step was replayed: the test shows nothing";
  EXPECT_GT(backend.drawn(), 100) << "the device drew nothing: the test shows nothing";
  for (const StepRecord& r : engine.records()) {
    int tokens = 0;
    for (const StepEntry& e : r.entries) tokens += e.tokens;
    EXPECT_EQ(r.kv_write_bytes, tokens * engine.loaded().plan.kv_bytes_per_token);
    EXPECT_GT(r.flops, 2.0 * static_cast<double>(engine.loaded().info.matmul_weights) * tokens);
  }
}

// More rows for the host than may come back late: the step is waited for.
TEST_P(Queued, WaitsWhereTheHostWantsManyRows) {
  EngineParts engine(load_queued(queued(2), GetParam()));
  Request r = request(1, 90, 8, 0);
  r.logprobs = r.prompt_logprobs = true;
  r.top_logprobs = 2;
  auto stream = engine.add(r)->stream;
  auto other = engine.add(request(2, 20, 30))->stream;
  while (engine.step()) continue;
  EXPECT_EQ(answer_of(*stream), on_ref(r, GetParam())[0]);
  EXPECT_EQ(answer_of(*other), on_ref(request(2, 20, 30), GetParam())[0]);
  EXPECT_EQ(stream->prompt_logprobs().logprobs.size(), 90u);
}

// Of a sequence whose tokens the host draws: nothing of it is in flight while it waits for them.
TEST_P(Queued, GuessesChangeNothing) {
  Request r = request(4, 30, 40, 1);
  r.logprobs = true;
  const Answer expected = on_ref(r, GetParam())[0];
  EngineParts engine(load_queued(queued(2), GetParam()));
  Sequence* s = engine.add(r);
  auto stream = s->stream;
  Answer got;
  std::mt19937 rng(5);
  while (engine.step()) {
    Answer part = answer_of(*stream);
    got.tokens.insert(got.tokens.end(), part.tokens.begin(), part.tokens.end());
    got.logprobs.insert(got.logprobs.end(), part.logprobs.begin(), part.logprobs.end());
    if (got.tokens.size() >= expected.tokens.size()) continue;  // the sequence may be gone
    if (s->in_flight > 0 || s->prefilling()) continue;
    s->draft.clear();
    for (std::size_t i = got.tokens.size(); i < expected.tokens.size() && s->draft.size() < 3; ++i)
      s->draft.push_back(rng() % 4 == 0 ? 5 : expected.tokens[i]);
  }
  EXPECT_EQ(got, expected);
  int guessed = 0;
  for (const StepRecord& record : engine.records())
    for (const StepEntry& e : record.entries) guessed += e.phase == Phase::kDecode && e.tokens > 1;
  EXPECT_GT(guessed, 5) << "no guess was computed: the test shows nothing";
}

QueueingBackend& backend_of(EngineParts& engine) {
  return dynamic_cast<QueueingBackend&>(*engine.loaded().backend);
}

// Guesses that are right with this chance, of texts that are known.
EngineOptions guessing(EngineOptions o, const KnownTexts& texts, double right, int most) {
  o.spec = SpecMode::kSuffix, o.spec_mib = 1, o.spec_always = true, o.spec_tokens = most;
  o.spec_source = [&texts, right] { return std::make_unique<SimulatedSource>(texts, right); };
  return o;
}

void know(KnownTexts& texts, const Request& r, const Answer& answer) {
  std::vector<std::int32_t> text = r.prompt;
  text.insert(text.end(), answer.tokens.begin(), answer.tokens.end());
  texts.set(r.cache_salt, std::move(text));
}

// Rows of several guesses, drawn on the device and on the host, with prompts and rows without guesses beside them.
TEST_P(Queued, SpeculationChangesNothing) {
  for (const int most : {1, 3, 8, 16}) {
    KnownTexts texts;
    std::vector<Request> requests = every_kind();
    std::vector<std::vector<Answer>> expected;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      requests[i].cache_salt = std::to_string(i);
      requests[i].speculative = i != 4;
      expected.push_back(on_ref(requests[i], GetParam()));
      know(texts, requests[i], expected[i][0]);
    }
    EngineOptions o = guessing(queued(6), texts, 0.7, most);
    o.step_tokens = 48;
    EngineParts engine(load_queued(o, GetParam()));
    std::vector<std::vector<std::shared_ptr<TokenStream>>> streams;
    for (const Request& r : requests) {
      Sequence* s = engine.add(r);
      streams.push_back({s->stream});
      for (auto& f : s->forks) streams.back().push_back(f->stream);
    }
    while (engine.step()) continue;
    for (std::size_t i = 0; i < requests.size(); ++i)
      for (std::size_t c = 0; c < expected[i].size(); ++c) {
        EXPECT_EQ(answer_of(*streams[i][c]), expected[i][c])
            << most << " guesses, request " << i << " choice " << c;
        EXPECT_EQ(streams[i][c]->wait().account.drafted > 0, i != 4);
      }
    int drafted = 0, accepted = 0;
    for (const StepRecord& r : engine.records()) drafted += r.drafted, accepted += r.accepted;
    EXPECT_GT(accepted, 20);
    EXPECT_LT(accepted, drafted);
    EXPECT_GT(backend_of(engine).drawn(), 100);
  }
}

// Five rows a step, which are recorded and replayed like any others.
TEST_P(Queued, RightGuessesSaveStepsThatAreReplayed) {
  KnownTexts texts;
  for (const int sequences : {1, 3, 9}) {
    std::vector<Request> requests;
    std::vector<Answer> expected;
    for (int seed = 20; std::ssize(requests) < sequences; ++seed) {
      Request r = request(seed, 20, 101, seed % 2);
      EXPECT_TRUE(r.sampling.set_logit_bias({}).ok());
      r.cache_salt = std::to_string(seed);
      const Answer answer = on_ref(r, GetParam())[0];
      if (answer.tokens.size() < 101) continue;  // it met the token that has no embedding
      know(texts, r, answer);
      requests.push_back(r), expected.push_back(answer);
    }
    EngineParts engine(load_queued(guessing(queued(sequences), texts, 1, 4), GetParam()));
    std::vector<std::shared_ptr<TokenStream>> streams;
    for (const Request& r : requests) streams.push_back(engine.add(r)->stream);
    while (engine.step()) continue;
    for (int i = 0; i < sequences; ++i) {
      EXPECT_EQ(answer_of(*streams[i]), expected[i]);
      EXPECT_LE(streams[i]->wait().account.timings.decode_steps, 23);
    }
    EXPECT_GT(backend_of(engine).repeats(), 8);
  }
}

// The device waits for the host only where there are guesses to be had.
TEST_P(Queued, StepsOverlapWhereNothingIsGuessed) {
  const KnownTexts nothing;
  EngineParts engine(load_queued(guessing(queued(2), nothing, 1, 4), GetParam()));
  for (int i = 0; i < 2; ++i) {
    Request r = request(i, 20, 100, 0);
    EXPECT_TRUE(r.sampling.set_logit_bias({}).ok());
    engine.add(r);
  }
  while (engine.step()) continue;
  EXPECT_LE(backend_of(engine).idle(), 2);
  EXPECT_GE(engine.records().size(), 50u);
}

// As in speculator_test.cpp, where steps are not queued: pages run out, sequences come, fork and go.
TEST_P(Queued, SpeculationChangesNothingUnderLoad) {
  for (const SpecMode mode : {SpecMode::kNgram, SpecMode::kSuffix}) {
    std::mt19937 rng(17);
    EngineOptions o = cramped(-1);
    o.spec = mode, o.spec_mib = 1, o.spec_always = true, o.kv_dtype = DType::kF32;
    EngineParts engine(load_queued(o, GetParam()));
    std::vector<Request> requests;
    std::vector<std::vector<std::shared_ptr<TokenStream>>> streams;
    std::vector<bool> cancelled;
    for (int i = 0; i < 40; ++i) {
      Request r = random_drawing(rng);
      if (i % 2 == 0)
        for (std::size_t k = 7; k < r.prompt.size(); ++k) r.prompt[k] = r.prompt[k - 7];
      if (i % 4 < 2) {
        EXPECT_TRUE(r.sampling.set_logit_bias({}).ok());
        EXPECT_TRUE(r.sampling.set("repetition_penalty", 1).ok());
        r.logprobs = false;  // drawn on the device
      }
      r.max_backlog = 0;
      requests.push_back(r);
      Sequence* s = engine.add(r);
      streams.push_back({s->stream});
      for (auto& f : s->forks) streams.back().push_back(f->stream);
      cancelled.push_back(false);
      for (auto turns = rng() % 12; turns > 0; --turns) {
        engine.step();
        if (rng() % 40 > 0) continue;
        const auto who = rng() % streams.size();
        streams[who][0]->cancel();
        cancelled[who] = true;
      }
    }
    while (engine.step()) continue;
    int accepted = 0;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const std::vector<Answer> expected = on_ref(requests[i], GetParam());
      for (std::size_t c = 0; c < expected.size(); ++c) {
        Answer got = answer_of(*streams[i][c]);
        accepted += streams[i][c]->wait().account.accepted;
        if (cancelled[i] && c == 0) {
          ASSERT_LE(got.tokens.size(), expected[c].tokens.size());
          Answer part = expected[c];
          part.tokens.resize(got.tokens.size()), part.logprobs.resize(got.logprobs.size());
          EXPECT_EQ(got, part) << "request " << i;
        } else {
          EXPECT_EQ(got, expected[c]) << "request " << i << " choice " << c;
        }
      }
    }
    EXPECT_GT(accepted, 5) << spec_mode_name(mode);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Queued, testing::Bool());

}  // namespace
}  // namespace vitrine
