// Forks of recorded requests, and requests that are held.
#include "server/recorded_testing.h"

namespace vitrine {
namespace {

using test::FakeExchange;
using test::RecordedTest;
using ::testing::HasSubstr;

const std::string kPrompt = R"("prompt":"abcdefghijklmnopqrstuvwxyz","max_tokens":20)";
constexpr int kFirst = 27;

class ForkTest : public RecordedTest {
 protected:
  std::unique_ptr<FakeExchange> fork(const std::string& label, const std::string& child,
                                     const std::string& fields) {
    auto x = std::make_unique<FakeExchange>(io, "{" + fields + "}");
    x->mutable_request().id = child;
    begin(*x, "/api/requests/" + label + "/fork");
    finish();
    EXPECT_EQ(x->status, 200) << x->body;
    return x;
  }
};

TEST_F(ForkTest, GoesOnAsTheOriginalDid) {
  for (
      const char* more :
      {R"("ignore_eos":true)", R"("temperature":1.3,"ignore_eos":true)",
       R"("temperature":1.3,"seed":2,"ignore_eos":true,"mirostat":2,"mirostat_tau":3)",
       R"("temperature":1.3,"seed":2,"ignore_eos":true,"adaptive_target":0.3,"dry_multiplier":1)",
       R"("temperature":1,"seed":3,"repetition_penalty":1.5,"frequency_penalty":1,"ignore_eos":true)",
       R"("temperature":1.5,"seed":4,"regex":"(ab|cd|ef)[0 ]{3,8}x")"}) {
    const auto ids = record("parent", kPrompt + "," + more);
    for (int p : {kFirst, kFirst + 1, static_cast<int>(ids.size()) - 1}) {
      auto x = fork("parent", "child", fmt::format("\"position\":{}", p));
      EXPECT_EQ(ids_of("child"), ids) << more << " " << p;
      std::string said;
      for (auto& frame : frames(*x)) {
        EXPECT_EQ(frame.at("id"), "cmpl-child");
        EXPECT_EQ(frame.at("parent"), "parent");
        EXPECT_EQ(frame.at("object"), "text_completion");
        said += text_of(frame.at("choices").at(0));
      }
      EXPECT_EQ(said, text(std::vector<std::int32_t>(ids.begin() + p, ids.end()))) << more;
    }
  }
}

TEST_F(ForkTest, AForcedTokenAndOtherParameters) {
  const auto ids = record("parent", kPrompt + R"(,"temperature":1,"seed":3,"ignore_eos":true)");
  fork("parent", "child", fmt::format(R"("position":{},"token":9)", kFirst + 4));
  const auto child = ids_of("child");
  EXPECT_TRUE(std::equal(ids.begin(), ids.begin() + kFirst + 4, child.begin()));
  EXPECT_EQ(child[kFirst + 4], 9);
  EXPECT_EQ(child.size(), ids.size());
  // The same as the engine by itself, and its stages are its own.
  for (int p = kFirst + 5; p < static_cast<int>(child.size()); ++p)
    EXPECT_TRUE(posted("child", "stages", fmt::format(R"({{"position":{}}})", p))
                    .at("same_token")
                    .as_bool());
  json::object told = look("child");
  EXPECT_EQ(told.at("begun").to_number<int>(), 5);
  EXPECT_EQ(told.at("parent"), look("parent").at("id"));
  EXPECT_EQ(look("parent").at("forks").as_array().back(), told.at("id"));
  EXPECT_FALSE(told.at("tokens").at(kFirst).as_object().contains("at_ns")) << "its parent said it";
  EXPECT_TRUE(told.at("tokens").at(kFirst + 5).as_object().contains("at_ns"));
  // A fork of a fork.
  fork("child", "grandchild", fmt::format(R"("position":{})", kFirst + 8));
  EXPECT_EQ(ids_of("grandchild"), child);
  // Another seed, greedy, another length, several, not as a stream, with log probabilities.
  auto x = fork("parent", "many",
                fmt::format(R"("position":{},"sampling":{{"temperature":0}},"seed":8,"n":2,)"
                            R"("max_tokens":3,"stream":false,"logprobs":true,"top_logprobs":2)",
                            kFirst + 2));
  const json::value many = json::parse(x->body);
  EXPECT_EQ(many.at("choices").as_array().size(), 2u);
  EXPECT_EQ(many.at("choices").at(0).at("text"), many.at("choices").at(1).at("text"));
  EXPECT_EQ(many.at("usage").at("completion_tokens").to_number<int>(), 6);
  EXPECT_EQ(many.at("choices").at(0).at("logprobs").at("tokens").as_array().size(), 3u);
  EXPECT_EQ(ids_of("many").size(), static_cast<std::size_t>(kFirst) + 5);
}

// A token that is put there does not change a state, then and later.
TEST_F(ForkTest, AForcedTokenLeavesTheState) {
  record("parent", kPrompt + R"(,"temperature":1.3,"seed":2,"ignore_eos":true,"mirostat":2)");
  fork("parent", "child", fmt::format(R"("position":{},"token":9)", kFirst + 4));
  for (int p = kFirst + 5; p < kFirst + 12; ++p)
    EXPECT_TRUE(posted("child", "stages", fmt::format(R"({{"position":{}}})", p))
                    .at("same_token")
                    .as_bool());
  fork("child", "grandchild", fmt::format(R"("position":{})", kFirst + 8));
  EXPECT_EQ(ids_of("grandchild"), ids_of("child"));
}

TEST_F(ForkTest, PagesComeFromTheCache) {
  record("parent", kPrompt + R"(,"ignore_eos":true)");
  auto x = fork("parent", "child", R"("position":40,"stream":false,"vitrine":{"timings":true})");
  const json::value account = json::parse(x->body).at("vitrine").at("choices").at(0);
  EXPECT_EQ(account.at("cached_tokens").to_number<int>(), 32);
  EXPECT_EQ(account.at("prompt_tokens").to_number<int>(), 40);
}

TEST_F(ForkTest, OfAChat) {
  const auto ids =
      record("parent",
             R"("messages":[{"role":"user","content":"hi"}],"max_tokens":12,"temperature":1,)"
             R"("seed":2,"ignore_eos":true)",
             "", "/v1/chat/completions");
  const int first = look("parent").at("prompt_tokens").to_number<int>();
  auto x = fork("parent", "child", fmt::format(R"("position":{})", first + 4));
  EXPECT_EQ(ids_of("child"), ids);
  EXPECT_EQ(frames(*x)[0].at("object"), "chat.completion.chunk");
}

TEST_F(ForkTest, HostileBodies) {
  record("kept", kPrompt + R"(,"ignore_eos":true)");
  expect_refused(
      "fork",
      {"", "[]", "{}", R"({"position":26})", R"({"position":48})", R"({"position":"x"})",
       R"({"position":30,"token":64})", R"({"position":30,"token":-1})",
       R"({"position":30,"token":"a"})", R"({"position":30,"n":0})", R"({"position":30,"n":1000})",
       R"({"position":30,"seed":"x"})", R"({"position":30,"max_tokens":0})",
       R"({"position":30,"sampling":{"top_k":-3}})", R"({"position":30,"top_logprobs":1000})",
       R"({"position":30,"prompt":"a"})", R"({"position":30,"vitrine":{"more":1}})"});
  record("kept", R"("prompt":"ab","max_tokens":5,"regex":"[0]{3,5}")");
  auto x = post("kept", "fork", R"({"position":4,"token":5})");
  EXPECT_EQ(x->status, 400);
  EXPECT_THAT(x->body, HasSubstr("constraint"));
  EXPECT_EQ(post("kept", "fork", R"({"position":4,"token":1})")->status, 400) << "ends the text";
}

// ---- hold

class HoldTest : public RecordedTest {
 protected:
  json::object hold(const std::string& body) {
    FakeExchange x(io, body);
    begin(x, "/api/requests/held/hold");
    turn();
    EXPECT_EQ(x.status, 200) << x.body;
    return json::parse(x.body).get_object();
  }
  void run(int steps = 10) {
    for (int i = 0; i < steps; ++i) engine->step(), turn();
  }
};

TEST_F(HoldTest, OneTokenAtATime) {
  const auto whole = record("whole", kPrompt + R"(,"temperature":1,"seed":6,"ignore_eos":true)");
  FakeExchange x(io, "{" + kPrompt +
                         R"(,"temperature":1,"seed":6,"ignore_eos":true,"stream":true,)"
                         R"("vitrine":{"record":true,"allow":1}})");
  x.mutable_request().id = "held";
  begin(x, test::kComplete);
  run();
  EXPECT_EQ(hold(R"({"allow":0})"), (json::object{{"state", "held"}, {"output", 1}}));
  EXPECT_EQ(hold(R"({"allow":2})"), (json::object{{"state", "running"}, {"output", 1}}));
  run();
  EXPECT_EQ(hold(R"({"allow":1})").at("output").to_number<int>(), 3);
  // Others go on meanwhile.
  FakeExchange other(io, R"({"prompt":"b","max_tokens":3})");
  begin(other, test::kComplete);
  run();
  EXPECT_EQ(other.status, 200);
  EXPECT_EQ(x.ended, false);
  EXPECT_EQ(hold(R"({"release":true})").at("state"), "running");
  finish();
  EXPECT_TRUE(x.ended);
  EXPECT_EQ(ids_of("held"), whole);
  EXPECT_EQ(hold(R"({"allow":1})"), (json::object{{"state", "ended"}, {"output", 20}}));
}

TEST_F(HoldTest, WhatCannotBeReleasedIsNotHeld) {
  for (const char* own : {R"({"allow":1})", R"({"allow":1,"record":false})",
                          R"({"record":true,"allow":-1})", R"({"record":true,"allow":"x"})"})
    EXPECT_EQ(call(test::kComplete, fmt::format(R"({{"prompt":"a","vitrine":{}}})", own))->status,
              400)
        << own;
  api.texts.configure(RecordMode::kNone, 1 << 20);
  auto x = call(test::kComplete, R"({"prompt":"a","vitrine":{"record":true,"allow":1}})");
  EXPECT_EQ(x->status, 400);
  EXPECT_THAT(x->body, HasSubstr("--record none"));
}

TEST_F(HoldTest, AForgottenRequestIsReleased) {
  FakeExchange x(io, "{" + kPrompt + R"(,"stream":true,"vitrine":{"record":true,"allow":0}})");
  x.mutable_request().id = "held";
  begin(x, test::kComplete);
  run();
  EXPECT_EQ(x.body, "");
  FakeExchange forget(io, "");
  forget.mutable_request().method = "DELETE";
  begin(forget, "/api/requests/held");
  finish();
  EXPECT_TRUE(x.ended);
}

TEST_F(HoldTest, HostileBodies) {
  record("kept", kPrompt);
  expect_refused("hold", {"", "[]", "{}", R"({"allow":-1})", R"({"allow":1e9})", R"({"allow":"1"})",
                          R"({"release":false})", R"({"allow":1,"release":true})",
                          R"({"release":1})", R"({"allow":1,"more":2})"});
}

}  // namespace
}  // namespace vitrine
