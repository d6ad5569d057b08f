// POST /v1/embeddings against a real engine. Exchange and engine take turns on one thread.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "server/api_test_fixture.h"
#include "tokenizer/charsmap.h"

namespace vitrine {
namespace {

using test::FakeExchange;
using ::testing::HasSubstr;

const std::string kEmbed = "/v1/embeddings";

class EmbeddingsTest : public test::ApiTest {
 protected:
  using ApiTest::ApiTest;
  std::vector<float> direct(std::vector<std::int32_t> ids, Pooling pooling = Pooling::kMean) {
    Request r;
    r.prompt = std::move(ids), r.max_tokens = 0, r.pooling = pooling;
    auto stream = *engine->submit(std::move(r));
    while (engine->step()) continue;
    return stream->embedding();
  }
  static std::vector<float> vector_of(const json::value& item) {
    std::vector<float> out;
    for (const json::value& x : item.at("embedding").as_array())
      out.push_back(static_cast<float>(x.to_number<double>()));
    return out;
  }
  void refused(const std::string& body, int status, const std::string& words) {
    auto x = call(kEmbed, body);
    EXPECT_EQ(x->status, status) << body;
    EXPECT_THAT(x->body, HasSubstr(words)) << body;
  }
};

TEST_F(EmbeddingsTest, EveryFormOfInput) {
  std::vector<std::int32_t> ab = tokenizer->encode("ab");
  for (const char* input : {R"("ab")", R"(["ab"])", "[0,4,5]", "[[0,4,5]]"}) {
    json::object answer = get(kEmbed, fmt::format(R"({{"model":"tiny","input":{}}})", input));
    EXPECT_EQ(answer["object"], "list");
    EXPECT_EQ(answer["model"], "tiny");
    EXPECT_EQ(answer["usage"], (json::object{{"prompt_tokens", 3}, {"total_tokens", 3}}));
    ASSERT_EQ(answer["data"].as_array().size(), 1u);
    const json::value& item = answer["data"].at(0);
    EXPECT_EQ(item.at("object"), "embedding");
    EXPECT_EQ(item.at("index"), 0);
    EXPECT_EQ(vector_of(item), direct(ab)) << input;
  }
}

TEST_F(EmbeddingsTest, ManyInputsRunTogetherAndKeepTheirOrder) {
  json::array input;
  for (int i = 0; i < 100; ++i)
    input.emplace_back(
        std::string(static_cast<std::size_t>(1 + i % 7), static_cast<char>('a' + i % 26)));
  json::object answer = get(kEmbed, to_json(json::object{{"input", input}}));
  ASSERT_EQ(answer["data"].as_array().size(), 100u);
  std::int64_t tokens = 0;
  for (int i = 0; i < 100; ++i) {
    const json::value& item = answer["data"].at(i);
    EXPECT_EQ(item.at("index"), i);
    auto ids = tokenizer->encode(std::string_view(input[i].as_string()));
    tokens += static_cast<std::int64_t>(ids.size());
    if (i % 9 != 0) continue;
    EXPECT_EQ(vector_of(item), direct(ids)) << i;
  }
  EXPECT_EQ(answer["usage"].at("prompt_tokens"), tokens);
  int most = 0;
  for (const Account& a : engine->accounts()) most = std::max(most, a.batch_max);
  EXPECT_EQ(most, 8);
  EXPECT_EQ(api.live.size(), 0u);
}

TEST_F(EmbeddingsTest, PoolingIsTheRequestsOrTheServers) {
  std::vector<std::int32_t> ids{0, 4, 5, 6, 7};
  auto of = [&](const char* more) {
    return vector_of(get(kEmbed, fmt::format(R"({{"input":[0,4,5,6,7]{}}})", more))["data"].at(0));
  };
  EXPECT_EQ(of(""), direct(ids, Pooling::kMean));
  EXPECT_EQ(of(R"(,"pooling":"last")"), direct(ids, Pooling::kLast));
  EXPECT_NE(direct(ids, Pooling::kLast), direct(ids, Pooling::kMean));
  api.pooling = Pooling::kLast;
  EXPECT_EQ(of(""), direct(ids, Pooling::kLast));
}

TEST_F(EmbeddingsTest, Base64HasTheSameFloats) {
  json::object answer = get(kEmbed, R"({"input":"ab","encoding_format":"base64","dimensions":31})");
  auto bytes = decode_base64(answer["data"].at(0).at("embedding").as_string());
  ASSERT_TRUE(bytes);
  ASSERT_EQ(bytes->size(), 31u * 4);
  std::vector<float> floats(31);
  std::memcpy(floats.data(), bytes->data(), bytes->size());
  json::object plain = get(kEmbed, R"({"input":"ab","dimensions":31})");
  EXPECT_EQ(floats, vector_of(plain["data"].at(0)));
}

TEST_F(EmbeddingsTest, FewerDimensionsHaveLengthOneAgain) {
  std::vector<float> whole = direct(tokenizer->encode("abc"));
  std::vector<float> part =
      vector_of(get(kEmbed, R"({"input":"abc","dimensions":5})")["data"].at(0));
  ASSERT_EQ(part.size(), 5u);
  double squares = 0, ratio = part[0] / whole[0];
  for (int i = 0; i < 5; ++i) {
    squares += part[i] * part[i];
    EXPECT_NEAR(part[i], whole[i] * ratio, 1e-6);
  }
  EXPECT_NEAR(squares, 1, 1e-5);
}

TEST_F(EmbeddingsTest, BadRequestsNameTheField) {
  refused("{}", 400, "input: found nothing");
  refused(R"({"input":""})", 400, "input: found an empty string");
  refused(R"({"input":[]})", 400, "input: found an empty list");
  refused(R"({"input":["a",""]})", 400, "input[1]: found an empty string");
  refused(R"({"input":[[]]})", 400, "input: found no tokens");
  refused(R"({"input":[[4],[]]})", 400, "input[1]: found no tokens");
  refused(R"({"input":["a",[4]]})", 400, "input[1]: found");
  refused(R"({"input":[4,64]})", 400, "input[1]");
  refused(R"({"input":{"a":1}})", 400, "input: found");
  refused(R"({"input":"a","dimensions":0})", 400,
          "dimensions: found 0, allowed whole numbers from 1 to 32");
  refused(R"({"input":"a","dimensions":33})", 400,
          "dimensions: found 33, allowed whole numbers from 1 to 32");
  refused(R"({"input":"a","encoding_format":"int8"})", 400, "encoding_format: found");
  refused(R"({"input":"a","pooling":"cls"})", 400, "pooling: found 'cls', allowed mean, last");
  refused(R"({"input":"a","temperature":1})", 400, "temperature");
  refused(R"({"input":"a","model":"other"})", 404, "model_not_found");
  refused(fmt::format(R"({{"input":"{}"}})", std::string(300, 'a')), 400,
          "context_length_exceeded");
  json::array many(2049, "a");
  refused(to_json(json::object{{"input", many}}), 400, "found 2049 inputs, allowed up to 2048");
}

TEST_F(EmbeddingsTest, BrokenStatesAreA500ThatNamesTheInput) {
  refused(R"({"input":[[4],[5,63],[6]]})", 500, "input[1]: the model's hidden states");
  EXPECT_EQ(api.live.size(), 0u);
}

TEST_F(EmbeddingsTest, AClientThatGoesAwayCancelsWhatRuns) {
  FakeExchange x(
      io, to_json(json::object{{"input", json::array(50, json::value(std::string(200, 'a')))}}));
  begin(x, kEmbed);
  turn();
  EXPECT_EQ(api.live.size(), 16u);
  x.leave();
  while (turn(), engine->step()) engine->check_integrity();
  EXPECT_EQ(open, 0);
  EXPECT_EQ(x.status, 0);
  EXPECT_EQ(api.live.size(), 0u);
  EXPECT_EQ(engine->pages_used()[0], 0);
  EXPECT_LT(engine->accounts().size(), 50u);
}

TEST_F(EmbeddingsTest, TheTimeIsTheRequests) {
  refused(R"({"input":"a","timeout":0})", 400, "timeout");
  FakeExchange x(io, R"({"input":["a","b"],"timeout":0.001})");
  begin(x, kEmbed);
  turn();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  finish();
  EXPECT_EQ(x.status, 504) << x.body;
}

TEST_F(EmbeddingsTest, VectorsCountAsBytesOfTheAnswer) {
  auto x = call(kEmbed, R"({"input":["a","b","c"]})");
  EXPECT_EQ(x->status, 200);
  EXPECT_EQ(x->held, 3 * engine->info().dim * 4);
  FakeExchange full(io, R"({"input":["a","b","c"]})");
  full.most_held = x->held - 1;
  begin(full, kEmbed);
  finish();
  EXPECT_EQ(full.status, 503);
  EXPECT_THAT(full.headers, ::testing::Contains(::testing::Pair("Retry-After", "1")));
}

TEST_F(EmbeddingsTest, ShutdownRefusesNewWorkAndCutsTheRest) {
  FakeExchange x(io, R"({"input":["a","b"]})");
  begin(x, kEmbed);
  turn();
  api.draining = true;
  refused(R"({"input":"a"})", 503, "shutting_down");
  EXPECT_EQ(x.status, 200) << x.body;
  api.draining = false;
  FakeExchange y(io, R"({"input":["a","b"]})");
  begin(y, kEmbed);
  turn();
  api.live.cancel_all();
  finish();
  EXPECT_EQ(y.status, 503) << y.body;
}

class ShortQueue : public EmbeddingsTest {
 protected:
  ShortQueue() : EmbeddingsTest(4) {}
};

TEST_F(ShortQueue, IsNoErrorForARequestOfManyInputs) {
  json::array input(60, "abc");
  json::object answer = get(kEmbed, to_json(json::object{{"input", input}}));
  EXPECT_EQ(answer["data"].as_array().size(), 60u);
}

TEST_F(EmbeddingsTest, TokensAreCounted) {
  get(kEmbed, R"({"input":[[4,5,6],[4]]})");
  auto metrics = call("/metrics");
  EXPECT_THAT(metrics->body, HasSubstr("vitrine:prompt_tokens_total{model_name=\"tiny\"} 4\n"));
  EXPECT_THAT(metrics->body, HasSubstr("vitrine:generation_tokens_total{model_name=\"tiny\"} 0\n"));
  json::object info = get("/api/info");
  EXPECT_EQ(info["embeddings"], (json::object{{"dimensions", 32}, {"pooling", "mean"}}));
}

}  // namespace
}  // namespace vitrine
