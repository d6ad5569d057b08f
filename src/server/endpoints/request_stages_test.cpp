// Stages and scans of recorded requests, against what the engine did.
#include <map>

#include "server/http/key_limits.h"
#include "server/recorded_testing.h"

namespace vitrine {
namespace {

using test::RecordedTest;
using ::testing::HasSubstr;

const std::string kPrompt = R"("prompt":"abcdefghijklmnopqrstuvwxyz","max_tokens":20)";
constexpr int kFirst = 27;  // position of the answer's first token

class StagesTest : public RecordedTest {
 protected:
  json::object stages(const std::string& label, int position, const std::string& more = "") {
    return posted(label, "stages", fmt::format(R"({{"position":{}{}}})", position, more));
  }
  // With the request's own parameters every position gives the token that it has.
  void expect_own(const std::string& label, const std::vector<std::int32_t>& ids,
                  int first = kFirst) {
    ASSERT_GT(static_cast<int>(ids.size()), first);
    for (int p = first; p < static_cast<int>(ids.size()); ++p) {
      json::object told = stages(label, p);
      expect_race(told);
      EXPECT_EQ(told.at("drawn").at("id").to_number<int>(), ids[static_cast<std::size_t>(p)]) << p;
      EXPECT_TRUE(told.at("same_token").as_bool());
      EXPECT_TRUE(told.at("exact").as_bool());
      EXPECT_EQ(told.at("stages").at(0).at("name"), "model");
      for (const json::value& stage : told.at("stages").as_array()) {
        double sum = stage.at("rest").at("p").to_number<double>();
        for (const json::value& c : stage.at("top").as_array()) sum += c.at(3).to_number<double>();
        EXPECT_NEAR(sum, 1, 1e-9);
      }
    }
    json::object scan = posted(label, "scan", "{}");
    EXPECT_TRUE(scan.at("first_difference").is_null());
    EXPECT_GE(scan.at("tokens").as_array().size(), ids.size() - static_cast<std::size_t>(first));
  }
  // The race has the winner first and no time before its own; the likeliest ones ran too. Where one
  // token is left there is none.
  static void expect_race(const json::object& told) {
    const json::object& last = told.at("stages").as_array().back().as_object();
    if (last.at("kept").to_number<int>() == 1) {
      EXPECT_FALSE(told.contains("race"));
      return;
    }
    ASSERT_TRUE(told.contains("race")) << json::serialize(told);
    const json::array& race = told.at("race").as_array();
    ASSERT_FALSE(race.empty());
    EXPECT_EQ(race[0].at("id"), told.at("drawn").at("id"));
    EXPECT_EQ(race[0].at("p"), told.at("drawn").at("p"));
    std::map<int, double> p;
    double before = 0;
    for (const json::value& run : race) {
      const auto time = run.at("time").to_number<double>(),
                 noise = run.at("noise").to_number<double>();
      EXPECT_GE(time, before);
      EXPECT_NEAR(noise / run.at("p").to_number<double>() / time, 1, 1e-12);
      EXPECT_GT(noise, 0);
      EXPECT_GT(run.at("weight").to_number<std::uint64_t>(), 0u);
      before = time;
      EXPECT_TRUE(p.emplace(run.at("id").to_number<int>(), run.at("p").to_number<double>()).second);
    }
    for (const json::value& c : last.at("top").as_array()) {
      const double share = c.at(3).to_number<double>();
      if (share == 0) continue;
      ASSERT_TRUE(p.contains(c.at(0).to_number<int>())) << c;
      EXPECT_EQ(p[c.at(0).to_number<int>()], share);
    }
  }
  static bool has_stage(const json::object& told, std::string_view name) {
    for (const json::value& stage : told.at("stages").as_array())
      if (stage.at("name").as_string() == name) return true;
    return false;
  }
};

TEST_F(StagesTest, OwnParametersEndInTheOwnToken) {
  expect_own("greedy", record("greedy", kPrompt + R"(,"ignore_eos":true)"));
  expect_own("sampled",
             record("sampled", kPrompt + R"(,"temperature":1.2,"top_p":0.9,"top_k":30,"seed":5)"));
  expect_own("unseeded", record("unseeded", kPrompt + R"(,"temperature":1,"ignore_eos":true)"));
  expect_own(
      "penalties",
      record("penalties", kPrompt + R"(,"temperature":1,"repetition_penalty":1.5,)"
                                    R"("frequency_penalty":1,"presence_penalty":0.5,"seed":3)"));
  expect_own("biased", record("biased", kPrompt + R"(,"temperature":1,"ignore_eos":true,)"
                                                  R"("logit_bias":{"5":4,"6":4,"63":-100})"));
  expect_own("long", record("long", kPrompt + R"(,"temperature":1,"min_tokens":20,)"
                                              R"("logit_bias":{"1":6,"63":-100})"));
}

// Of samplers that see the tokens so far, a coin, or a state that is rebuilt from what was kept.
TEST_F(StagesTest, WhatSamplersRememberIsRebuilt) {
  const std::string sampled = kPrompt + R"(,"temperature":1.2,"ignore_eos":true,"seed":6,)"
                                        R"("logit_bias":{"63":-100},)";
  for (const char* more :
       {R"("mirostat":1,"mirostat_tau":3)", R"("mirostat":2,"mirostat_tau":2,"mirostat_eta":0.5)",
        R"("adaptive_target":0.3,"min_p":0.01)", R"("dry_multiplier":2,"dry_allowed_length":1)",
        R"("no_repeat_ngram_size":1)", R"("xtc_probability":0.5,"xtc_threshold":0.01)",
        R"("bad_words":["a","bc"],"dynatemp_range":0.5,"top_h":0.9,"eta_cutoff":0.001)"})
    expect_own("kept", record("kept", sampled + more));
  // A state that was not kept.
  auto refused = post("kept", "scan", R"({"sampling":{"mirostat":2}})");
  EXPECT_EQ(refused->status, 400);
  EXPECT_THAT(refused->body, HasSubstr("mirostat has a state, which is not kept"));
  record("mirostat", sampled + R"("mirostat":2)");
  EXPECT_EQ(post("mirostat", "fork", R"({"position":30,"sampling":{"mirostat":0}})")->status, 200);
  EXPECT_EQ(post("mirostat", "scan", R"({"sampling":{"mirostat_tau":1}})")->status, 200);
}

TEST_F(StagesTest, ConstraintsAndReasoningAreRebuilt) {
  const auto ids =
      record("grammar", kPrompt + R"(,"temperature":1.5,"seed":4,"regex":"(ab|cd|ef)[0 ]{3,8}x")");
  expect_own("grammar", ids);
  EXPECT_TRUE(has_stage(stages("grammar", kFirst), "mask"));
  Request r;
  for (int i = 0; i < 30; ++i) r.prompt.push_back(4 + i);
  r.max_tokens = 20, r.ignore_eos = true, r.sampling = api.defaults;
  r.sampling.set_seed(1);
  EXPECT_TRUE(r.sampling.set("temperature", 1).ok());
  r.reasoning = ReasoningBudget{.tokens = 6, .begin = {7}, .end = {8, 9, 10}, .inside = true};
  const auto reasoned = record_by_hand("reasoned", r);
  expect_own("reasoned", reasoned, 30);
  int forced = 0;
  for (int p = 30; p < 50; ++p) forced += has_stage(stages("reasoned", p), "forced");
  EXPECT_EQ(forced, 3);
}

TEST_F(StagesTest, OtherParametersChangeWhatTheyMust) {
  record("hot", kPrompt + R"(,"temperature":2,"seed":9,"ignore_eos":true)");
  int differ = 0;
  for (int p = kFirst; p < kFirst + 10; ++p) {
    // T = 0 is greedy.
    json::object greedy = stages("hot", p, R"(,"sampling":{"temperature":0})");
    EXPECT_EQ(greedy.at("drawn").at("id"), greedy.at("stages").at(0).at("top").at(0).at(0));
    // Another order keeps other tokens.
    json::object usual = stages("hot", p, R"(,"sampling":{"temperature":2,"top_p":0.5})");
    json::object turned = stages("hot", p,
                                 R"(,"sampling":{"temperature":2,"top_p":0.5},)"
                                 R"("samplers":["top_p","temperature"])");
    EXPECT_EQ(usual.at("stages").at(2).at("name"), "temperature");
    EXPECT_EQ(usual.at("stages").at(3).at("name"), "top_p");
    EXPECT_EQ(turned.at("stages").at(2).at("name"), "top_p");
    const int fewer = turned.at("stages").at(2).at("kept").to_number<int>(),
              more = usual.at("stages").at(3).at("kept").to_number<int>();
    EXPECT_LE(fewer, more);
    differ += fewer < more;
  }
  EXPECT_GT(differ, 0);
  json::object some = stages("hot", kFirst, R"(,"top":5,"draws":1000)");
  EXPECT_EQ(some.at("stages").at(0).at("top").as_array().size(), 5u);
  int drawn = 0;
  for (const auto& count : some.at("draws").as_object()) drawn += count.value().to_number<int>();
  EXPECT_EQ(drawn, 1000);
  // What would come after the last one is not known to have been anything.
  json::object next = stages("hot", kFirst + 20);
  EXPECT_TRUE(next.at("was").is_null());
  EXPECT_FALSE(next.at("same_token").as_bool());
}

TEST_F(StagesTest, WhatEndedTheTextWasDrawnToo) {
  const auto ids =
      record("ended", kPrompt + R"(,"temperature":1,"seed":2,"logit_bias":{"1":3,"63":-100})");
  ASSERT_LT(ids.size(), 47u) << "the end token did not come";
  json::object told = stages("ended", static_cast<int>(ids.size()));
  EXPECT_EQ(told.at("was").to_number<int>(), test::kEos);
  EXPECT_TRUE(told.at("same_token").as_bool());
  EXPECT_TRUE(told.at("drawn").at("ends").as_bool());
}

// Rows that were computed are kept; others come from few rows after cached pages.
TEST_F(StagesTest, ReplaysComputeLittle) {
  record("kept", kPrompt + R"(,"ignore_eos":true)");
  const int first = stages("kept", 40).at("computed_rows").to_number<int>();
  EXPECT_GT(first, 0);
  EXPECT_LE(first, 16) << "at most a page";
  EXPECT_EQ(stages("kept", 40).at("computed_rows").to_number<int>(), 0);
  EXPECT_GT(api.rows.bytes(), 0u);
  call("/api/requests/kept", "", "", "DELETE");
  EXPECT_EQ(api.rows.bytes(), 0u);
  EXPECT_EQ(post("kept", "stages", R"({"position":40})")->status, 404);
}

TEST_F(StagesTest, ScanFindsTheFirstDifference) {
  const std::string base = kPrompt + R"(,"seed":11,"ignore_eos":true)";
  const auto was = record("was", base + R"(,"temperature":1)");
  int found = 0;
  for (const char* other : {R"("temperature":0.6)", R"("temperature":1,"top_k":8)",
                            R"("temperature":1,"repetition_penalty":1.4)"}) {
    const auto now = record("now", base + "," + other);
    const auto differs = std::mismatch(was.begin(), was.end(), now.begin()).first - was.begin();
    json::object scan = posted("was", "scan", fmt::format(R"({{"sampling":{{{}}}}})", other));
    if (differs == static_cast<std::ptrdiff_t>(was.size())) {
      EXPECT_TRUE(scan.at("first_difference").is_null());
      continue;
    }
    ++found;
    EXPECT_EQ(scan.at("first_difference").to_number<std::ptrdiff_t>(), differs) << other;
    const json::value& row = scan.at("tokens").at(static_cast<std::size_t>(differs) - kFirst);
    EXPECT_EQ(row.at(0).to_number<std::ptrdiff_t>(), differs);
    EXPECT_EQ(row.at(1).to_number<int>(), was[static_cast<std::size_t>(differs)]);
    EXPECT_EQ(row.at(2).to_number<int>(), now[static_cast<std::size_t>(differs)]);
    EXPECT_GT(row.at(4).to_number<double>(), 0);
    EXPECT_EQ(scan.at("tokens").as_array().size(), 20u);
  }
  EXPECT_GT(found, 0);
  json::object tail = posted("was", "scan", R"({"from":40})");
  EXPECT_EQ(tail.at("tokens").as_array().size(), 7u);
}

TEST_F(StagesTest, HostileBodies) {
  record("kept", kPrompt + R"(,"ignore_eos":true)");
  expect_refused("stages", {"",
                            "[]",
                            "{",
                            "{}",
                            R"({"position":null})",
                            R"({"position":26})",
                            R"({"position":48})",
                            R"({"position":-1})",
                            R"({"position":1e30})",
                            R"({"position":"30"})",
                            R"({"position":30.5})",
                            R"({"position":30,"top":0})",
                            R"({"position":30,"top":65})",
                            R"({"position":30,"draws":10001})",
                            R"({"position":30,"draws":-1})",
                            R"({"position":30,"sampling":[]})",
                            R"({"position":30,"sampling":{"temperature":-1}})",
                            R"({"position":30,"sampling":{"nothing":1}})",
                            R"({"position":30,"sampling":{"logit_bias":{"64":1}}})",
                            R"({"position":30,"samplers":"top_k"})",
                            R"({"position":30,"samplers":["x"]})",
                            R"({"position":30,"samplers":["top_k","top_k"]})",
                            R"({"position":30,"more":1})"});
  expect_refused("scan", {"", "[]", R"({"from":26})", R"({"from":48})", R"({"from":"x"})",
                          R"({"sampling":{"top_p":2}})", R"({"position":30})"});
  // None of it is left in the engine.
  EXPECT_EQ(api.live.size(), 0u);
  EXPECT_EQ(engine->snapshot().running.size(), 0u);
}

TEST_F(StagesTest, AClientThatLeavesEndsItsReplay) {
  record("kept", kPrompt + R"(,"ignore_eos":true)");
  for (const char* what : {"stages", "scan"}) {
    test::FakeExchange x(io, what == std::string("scan") ? "{}" : R"({"position":30})");
    begin(x, std::string("/api/requests/kept/") + what);
    turn();
    x.leave();
    finish();
    EXPECT_EQ(x.status, 0);
    while (engine->step()) continue;
    EXPECT_EQ(api.live.size(), 0u);
  }
  api.draining = true;
  EXPECT_EQ(post("kept", "stages", R"({"position":31})")->status, 503);
}

// ---- what a key with a limit of tokens is charged

class ChargedTest : public StagesTest {
 protected:
  // A call of the key "ann" that may have so many tokens a minute.
  std::unique_ptr<test::FakeExchange> call_with(std::int64_t tpm, const std::string& path,
                                                const std::string& body) {
    auto x = std::make_unique<test::FakeExchange>(io, body);
    HttpRequest& http = x->mutable_request();
    http.tenant = "ann";
    http.rights = {.is_operator = false, .min_priority = 0, .tpm_limit = tpm};
    std::optional<OverLimit> over;
    http.use = limits.begin("ann", http.rights, over);
    begin(*x, path);
    return x;
  }
  static int remaining(const test::FakeExchange& x) {
    Headers headers;
    x.request().use->add_headers(headers);
    for (const auto& [name, value] : headers)
      if (name == "x-ratelimit-remaining-tokens") return std::stoi(value);
    return -1;
  }
  KeyLimits limits;
};

// What it computes, not the text again for each of the times that it fetches rows.
TEST_F(ChargedTest, AScanOfManyRowsTakesWhatItCosts) {
  constexpr int kMinute = 1000;
  record("long", R"("prompt":"abcdefghijklmnopqrstuvwxyz","max_tokens":200,"ignore_eos":true)",
         "ann");
  auto x = call_with(kMinute, "/api/requests/long/scan", "{}");
  finish();
  ASSERT_EQ(x->status, 200) << x->body;
  const json::value told = json::parse(x->body);
  EXPECT_EQ(told.at("tokens").as_array().size(), 200u);
  EXPECT_GE(remaining(*x), kMinute - told.at("computed_rows").to_number<int>());
}

TEST_F(ChargedTest, OneThatIsLeftEarlyCostsWhatItAskedFor) {
  record("kept", kPrompt + R"(,"ignore_eos":true)", "ann");
  auto x = call_with(31, "/api/requests/kept/stages", R"({"position":30})");
  turn();
  EXPECT_EQ(api.live.size(), 1u);
  x->leave();
  finish();
  while (engine->step()) continue;
  EXPECT_LT(remaining(*x), 16) << "30 were taken, and come back in a minute";
}

TEST_F(StagesTest, KeysSeeTheirOwn) {
  record("mine", kPrompt + R"(,"ignore_eos":true)", "ann");
  EXPECT_EQ(post("mine", "stages", R"({"position":30})", "ann")->status, 200);
  EXPECT_EQ(post("mine", "scan", "{}", "ann")->status, 200);
  for (const char* what : {"stages", "scan", "fork", "hold"})
    EXPECT_EQ(post("mine", what, R"({"position":30})", "bob")->status, 404) << what;
}

}  // namespace
}  // namespace vitrine
