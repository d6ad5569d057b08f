// Guesses for the next tokens are computed beside the last one and taken back where they were
// wrong. Whatever is guessed, the answer is the one without guesses.
#include "engine/test_answers.h"
#include "engine/test_parts.h"

namespace vitrine {
namespace {

using namespace test;

enum class Guess { kRight, kWrong, kMixed };

// What `expected` says follows, right, wrong or both.
std::vector<std::int32_t> guess(const std::vector<std::int32_t>& expected, std::size_t at,
                                Guess kind, std::mt19937& rng) {
  std::vector<std::int32_t> out;
  for (std::size_t i = at; i < expected.size() && i < at + 4; ++i) {
    bool wrong = kind == Guess::kWrong || (kind == Guess::kMixed && rng() % 2);
    out.push_back(wrong ? (expected[i] + 1 + static_cast<int>(rng() % 5)) % kNanToken
                        : expected[i]);
  }
  return out;
}

class Draft : public testing::TestWithParam<std::tuple<bool, int, Guess>> {};

TEST_P(Draft, NeverChangesTheAnswer) {
  auto [window, delay, kind] = GetParam();
  EngineOptions o = options(3);
  o.commit_delay = delay, o.poison_pages = true, o.step_tokens = 40;
  std::mt19937 rng(7);
  for (int turn = 0; turn < 4; ++turn) {
    EngineParts engine(std::move(load_for_serving(model(window), o)).value());
    std::vector<Request> requests;
    std::vector<Sequence*> sequences;
    std::vector<std::shared_ptr<TokenStream>> streams;
    std::vector<Answer> expected;
    for (int i = 0; i < 3; ++i) {
      Request r = request(10 * turn + i, 20 + 17 * i, 40, turn % 2);
      r.logprobs = i != 1;
      r.ignore_eos = turn < 3;
      if (turn == 2) {
        EXPECT_TRUE(r.sampling.set("repetition_penalty", 1.3).ok());
      }
      expected.push_back(alone(r, window)[0]);
      sequences.push_back(engine.add(r));
      streams.push_back(sequences.back()->stream);
    }
    std::vector<Answer> got(3);
    int steps = 0;
    auto read = [&](int i) {
      Answer part = answer_of(*streams[i]);
      got[i].tokens.insert(got[i].tokens.end(), part.tokens.begin(), part.tokens.end());
      got[i].logprobs.insert(got[i].logprobs.end(), part.logprobs.begin(), part.logprobs.end());
    };
    while (engine.step()) {
      ++steps;
      for (int i = 0; i < 3; ++i) {
        read(i);
        if (sequences[i] == nullptr) continue;
        if (got[i].tokens.size() >= expected[i].tokens.size())
          sequences[i] = nullptr;  // it may be gone
        else if (sequences[i]->in_flight == 0 && !sequences[i]->prefilling())
          sequences[i]->draft = guess(expected[i].tokens, got[i].tokens.size(), kind, rng);
      }
    }
    for (int i = 0; i < 3; ++i) EXPECT_EQ(got[i], expected[i]) << "request " << i;
    if (kind == Guess::kRight && turn < 3 && delay == 0) {
      EXPECT_LT(steps, 20) << "right guesses were not used";
    }
    if (kind == Guess::kWrong && turn < 3) {
      EXPECT_GE(steps, 40);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Draft,
                         testing::Combine(testing::Bool(), testing::Values(0, 1),
                                          testing::Values(Guess::kRight, Guess::kWrong,
                                                          Guess::kMixed)));

}  // namespace
}  // namespace vitrine
