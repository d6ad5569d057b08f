// Answers of the API are the same with guesses as without, where the reader ends them: the engine has then drawn tokens
// that nobody shall see or pay for.
#include "server/api_test_fixture.h"

namespace vitrine {
namespace {

class SpeculationApiTest : public test::ApiTest {
 protected:
  SpeculationApiTest() {
    EngineOptions options = engine->options();
    options.kv_tokens = 0;
    options.spec = SpecMode::kSuffix, options.spec_mib = 4;
    options.spec_always = true, options.spec_tokens = 4;
    auto made = Engine::create(test::tiny_model(), options);
    EXPECT_TRUE(made.ok()) << made.error().message;
    engine = std::move(made).value();
    api.attach(*engine);
  }
  // What of an answer must not differ.
  json::object answer(const std::string& body) {
    json::object out = get("/v1/completions", body);
    const json::object& usage = out["usage"].as_object();
    return {{"choices", out["choices"]},
            {"prompt_tokens", usage.at("prompt_tokens")},
            {"completion_tokens", usage.at("completion_tokens")}};
  }
  std::string streamed(const std::string& body) {
    auto x = call("/v1/completions", body + R"(,"stream":true})");
    std::string out;
    for (const json::object& frame : frames(*x))
      for (const json::value& choice : frame.at("choices").as_array()) out += text_of(choice);
    return out;
  }
};

TEST_F(SpeculationApiTest, AStopStringEndsAtEveryPlaceOfADraft) {
  const std::string begin =
      R"({"prompt":"abcabcabc","max_tokens":40,"ignore_eos":true,"logprobs":2)";
  const std::string plain = begin + R"(,"speculative":false)";
  for (int i = 0; i < 3; ++i) get("/v1/completions", begin + "}");  // to guess from
  const std::string whole = text_of(answer(plain + "}").at("choices").at(0));
  ASSERT_GT(whole.size(), 30u);
  int stopped = 0, last = 0;
  for (std::size_t at = 0; at + 3 <= whole.size(); ++at)
    for (const std::size_t length : {1, 2, 3}) {
      const std::string stop = R"(,"stop":)" + to_json(json::value(whole.substr(at, length)));
      const json::object expected = answer(plain + stop + "}");
      EXPECT_EQ(json::value(answer(begin + stop + "}")), json::value(expected)) << at;
      EXPECT_EQ(streamed(begin + stop), text_of(expected.at("choices").at(0))) << at;
      stopped += expected.at("choices").at(0).at("finish_reason") == "stop";
      last = std::max(last, static_cast<int>(expected.at("completion_tokens").as_int64()));
    }
  EXPECT_GT(stopped, 90);
  EXPECT_GT(last, 8) << "some stop late";
  EXPECT_GT(engine->metrics().accepted_by_place[3], 10u) << "whole drafts were right";
}

}  // namespace
}  // namespace vitrine
