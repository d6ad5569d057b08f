// What is promised holds for a real model, and what does not hold is found.
#include "verify/verify.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "tokenizer/constraint_source.h"
#include "tokenizer/tokenizer.h"

namespace vitrine::verify {
namespace {

std::shared_ptr<const ModelFile> opened(const std::string& name) {
  auto file = ModelFile::open(std::string(VT_FIXTURES) + "/../../models/" + name);
  EXPECT_TRUE(file.ok()) << file.error().message;
  return std::shared_ptr<const ModelFile>(std::move(file).value());
}

const std::shared_ptr<const ModelFile>& model() {
  static const std::shared_ptr<const ModelFile> kModel = opened("draft.gguf");
  return kModel;
}

Options options(std::vector<std::string> only = {}) {
  static const CaseRoom kRoom = [] {
    CaseRoom room{
        .vocab = 2048, .context = 256, .max_tokens = 20, .page_size = 16, .chunk = kChunk};
    auto tokenizer = Tokenizer::load(*model()).value();
    room.vocab = tokenizer->vocab_size();
    room.text = tokenizer->encode(sample_text(), {.add_special = false});
    const ConstraintSource source;
    for (const ConstraintSpec& spec : sample_constraints())
      room.constraints.push_back(source.compile(tokenizer.get(), spec).value());
    return room;
  }();
  Options o;
  o.engine.backend = "cpu", o.engine.threads = 2, o.engine.page_size = 16;
  o.room = kRoom;
  o.cases = 16;
  o.only = std::move(only);
  return o;
}

Report verified(const Options& o) {
  auto report = verify(model(), o);
  EXPECT_TRUE(report.ok()) << report.error().message;
  return report.ok() ? *report : Report{};
}

TEST(Verify, HoldsHere) {
  Options o = options();
  // The larger model guesses for the smaller one: what matters here is that it is sometimes wrong.
  o.engine.draft = {.file = opened("demo.gguf"), .ids = static_cast<std::int32_t>(o.room.vocab)};
  const Report report = verified(o);
  EXPECT_TRUE(report.ok());
  EXPECT_TRUE(report.exact);
  EXPECT_EQ(report.rows.size(), all_conditions().size() + 1);
  for (const Row& row : report.rows) {
    EXPECT_EQ(row.differences, 0) << row.condition;
    EXPECT_TRUE(row.happened) << row.condition << ": " << row.seen;
    EXPECT_EQ(row.missing, "") << row.condition;
    EXPECT_GT(row.cases, 0) << row.condition;
    EXPECT_GT(row.tokens, 0) << row.condition;
    EXPECT_EQ(row.same, row.tokens) << row.condition;
  }
  for (const Difference& d : report.differences)
    ADD_FAILURE() << d.condition << ", case " << d.number << ", " << d.what << ": " << d.text;
}

// Changes request `number` under `condition` by so little that few of its bits change.
Options meddled(const char* condition, int number, std::function<void(Request&)> change) {
  Options o = options({condition});
  o.meddle = [=, change = std::move(change)](const char* name, int n, Request& r) {
    if (name == std::string_view(condition) && n == number) change(r);
  };
  return o;
}

TEST(Verify, FindsWhatDiffers) {
  const auto bias = [](Request& r) { ASSERT_TRUE(r.sampling.set_logit_bias({{17, 100}}).ok()); };
  const auto prompt = [](Request& r) { r.prompt[0] ^= 1; };
  const auto seed = [](Request& r) { r.sampling.set_seed(*r.sampling.seed() + 1); };
  const auto limit = [](Request& r) { --*r.max_tokens; };
  struct Fault {
    const char* condition;
    int number;
    std::function<void(Request&)> change;
    const char* text;
  };
  for (const Fault& f : {Fault{"alone", 0, bias, "token 0: found 17, alone "},
                         {"batched", 8, prompt, "logits of position "},
                         {"chunked", 2, seed, "token "},
                         {"preempted", 6, limit, "token 18: found the end, alone "},
                         {"forked", 2, bias, "token 0: found 17"},
                         {"cached", 0, bias, "token 0: found 17"},
                         {"suffix", 2, seed, "token "},
                         {"threads", 0, prompt, "logits of position"},
                         {"mixed", 2, seed, "token "}}) {
    Options o = meddled(f.condition, f.number, f.change);
    const Report whole = verified(o);
    EXPECT_FALSE(whole.ok()) << f.condition;
    ASSERT_EQ(whole.differences.size(), 1u) << f.condition;
    const Difference& d = whole.differences[0];
    EXPECT_EQ(d.condition, f.condition);
    EXPECT_EQ(d.number, f.number);
    EXPECT_TRUE(d.text.starts_with(f.text)) << f.condition << ": " << d.text;
    // The case alone says the same, and the others are silent.
    o.one = d.number;
    const Report again = verified(o);
    ASSERT_EQ(again.differences.size(), 1u) << f.condition;
    EXPECT_EQ(again.differences[0].text, d.text);
    o.one = f.number ^ 1;
    EXPECT_EQ(verified(o).differences.size(), 0u) << f.condition;
  }
}

TEST(Verify, ADrawOfAnotherDistributionIsFound) {
  EXPECT_TRUE(verified(options({kDrawn})).ok());
  const Report report = verified(meddled(
      kDrawn, 0, [](Request& r) { ASSERT_TRUE(r.sampling.set("temperature", 1.15).ok()); }));
  EXPECT_FALSE(report.ok());
}

// What never happened proves nothing.
TEST(Verify, AConditionThatDidNotComeAboutIsAnError) {
  Options o = options({"forked"});
  o.meddle = [](const char*, int, Request& r) { r.choices = 1; };
  o.cases = 2;  // none of which has several choices
  const Report report = verified(o);
  ASSERT_EQ(report.rows.size(), 1u);
  EXPECT_FALSE(report.rows[0].happened);
  EXPECT_FALSE(report.ok());
}

TEST(Verify, RefusesWhatCannotBe) {
  const auto refused = [](auto change, const char* word) {
    Options o = options();
    change(o);
    const auto report = verify(model(), o);
    ASSERT_FALSE(report.ok()) << word;
    EXPECT_NE(report.error().message.find(word), std::string::npos) << report.error().message;
  };
  refused([](Options& o) { o.room.context = 40; }, "a context of 40");
  refused([](Options& o) { o.one = 16; }, "0 to 15");
  refused([](Options& o) { o.only = {"xyz"}; }, "xyz");
  refused([](Options& o) { o.engine.backend = "xyz"; }, "xyz");
}

// docs/decoding.md has a row for each condition.
TEST(Verify, IsDocumented) {
  std::ifstream file(VT_FIXTURES "/../../docs/decoding.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> names{kDrawn};
  for (const Condition& c : all_conditions()) names.emplace_back(c.name);
  for (const std::string& name : names) {
    const bool found = text.find("| `" + name + "` |") != std::string::npos ||
                       text.find("| `" + name + "`, ") != std::string::npos ||
                       text.find(", `" + name + "` |") != std::string::npos;
    EXPECT_TRUE(found) << name;
  }
}

TEST(VerifyCases, ArePureAndOfAllKinds) {
  const Options o = options();
  std::map<std::string, int> seen;
  for (int i = 0; i < 64; ++i) {
    const Case a = make_case(o.room, 3, i), b = make_case(o.room, 3, i);
    EXPECT_EQ(a.request.prompt, b.request.prompt);
    EXPECT_EQ(a.request.sampling.seed(), b.request.sampling.seed());
    EXPECT_NE(a.request.sampling.seed(), make_case(o.room, 4, i).request.sampling.seed());
    const Request& r = a.request;
    ASSERT_GT(r.prompt.size(), 0u);
    EXPECT_LE(static_cast<int>(r.prompt.size()) + *r.max_tokens, o.room.context);
    const auto note = [&](const char* what, bool here) { seen[what] += here; };
    note("greedy", r.sampling.get("temperature") == 0);
    note("choices", r.choices > 1);
    note("constraint", r.constraint != nullptr);
    note("reasoning", r.reasoning.has_value());
    note("stop tokens", !r.stop_token_ids.empty());
    note("end tokens", !r.ignore_eos);
    note("top", r.top_logprobs > 0);
    note("prompt", r.prompt_logprobs);
    note("repetition", r.repetition.has_value());
    note("page", r.prompt.size() == 16);
    note("before a page", r.prompt.size() == 15);
    note("after a page", r.prompt.size() == 17);
    note("one token", r.prompt.size() == 1);
    note("long", static_cast<int>(r.prompt.size()) == o.room.context - o.room.max_tokens);
  }
  for (const auto& [what, n] : seen) EXPECT_GT(n, 1) << what;
}

TEST(VerifyAnswers, DifferInEachOfTheirParts) {
  Answer a;
  a.tokens = {1, 2}, a.logprobs = {-1, -2}, a.shares = {0.5, 0.25}, a.top = {{1, -1}, {2, -2}};
  a.prompt_logprobs = {0, -3}, a.logits = {{4, {1, 2, 3}}};
  EXPECT_FALSE(difference(a, a));
  const auto differs = [&](auto change, const char* word) {
    Answer b = a;
    change(b);
    const auto text = difference(a, b);
    ASSERT_TRUE(text) << word;
    EXPECT_NE(text->find(word), std::string::npos) << *text;
  };
  differs([](Answer& b) { b.tokens[1] = 3; }, "token 1: found 3, alone 2");
  differs([](Answer& b) { b.tokens.pop_back(); }, "token 1: found the end, alone 2");
  differs([](Answer& b) { b.logprobs[0] = std::nextafter(-1.0f, 0.0f); },
          "log probability of token 0");
  differs([](Answer& b) { b.shares[1] = 0.5; }, "learns of token 1");
  differs([](Answer& b) { b.top[1].token = 9; }, "best tokens");
  differs([](Answer& b) { b.prompt_logprobs[0] = -0.0f; }, "prompt token 0");
  differs([](Answer& b) { b.logits[4][2] = 4; }, "position 4, token 2");
  differs([](Answer& b) { b.logits.clear(); }, "position 4: missing");
  differs([](Answer& b) { b.reason = FinishReason::kLength; }, "found length, alone stop");
  differs([](Answer& b) { b.stop_token = 2; }, "end token");
  differs([](Answer& b) { b.completion_tokens = 3; }, "counts");
}

TEST(VerifyAnswers, AgreeUpToRounding) {
  Answer a, b;
  a.tokens = {1, 2, 3}, a.logprobs = {-1, -2, -3}, a.logits = {{0, {1, 2, 3}}};
  b = a;
  b.logits[0][1] += 0.01f, b.logprobs[0] -= 0.01f;
  EXPECT_FALSE(disagreement(a, b, 0.05));
  b.tokens[1] = 5, b.logprobs[1] = -0.1f;  // from there on it is another text
  EXPECT_FALSE(disagreement(a, b, 0.05));
  b.logprobs[0] = -0.5f;
  EXPECT_TRUE(disagreement(a, b, 0.05));
  b = a;
  b.logits[0][1] += 1;
  EXPECT_TRUE(disagreement(a, b, 0.05));
  b.logits[0][1] = NAN;
  EXPECT_TRUE(disagreement(a, b, 0.05));
}

// Draws of the distribution itself surprise little, those of another one much.
TEST(VerifyAnswers, SurpriseIsAStatistic) {
  std::vector<float> logits;
  std::vector<double> right, wrong;
  std::mt19937 rng(1);
  for (int i = 0; i < 500; ++i) {
    logits.push_back(static_cast<float>(rng() % 1000) / 150);
    right.push_back(std::exp(logits.back()));
    wrong.push_back(std::exp(logits.back() / 1.5));
  }
  const auto of = [&](const std::vector<double>& p) {
    std::discrete_distribution<int> draw(p.begin(), p.end());
    std::map<std::int32_t, int> counts;
    for (int i = 0; i < kDraws; ++i) ++counts[draw(rng)];
    return surprise(logits, counts);
  };
  double most = 0, least = 100;
  for (int i = 0; i < 300; ++i) most = std::max(most, std::fabs(of(right)));
  for (int i = 0; i < 20; ++i) least = std::min(least, of(wrong));
  EXPECT_LT(most, 4.5);
  EXPECT_GT(most, 1.5);
  EXPECT_GT(least, kMostSurprise);
  // Nearly all is one token's: the rest says nothing.
  EXPECT_EQ(surprise({20, 0, 0}, {{0, 2047}, {1, 1}}), 0);
  // A token that cannot be.
  EXPECT_GT(surprise({1, 1, -200}, {{0, 1000}, {1, 1000}, {2, 48}}), kMostSurprise);
}

}  // namespace
}  // namespace vitrine::verify
