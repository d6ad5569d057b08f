// The other endpoints, against a real engine on a tiny model; what all endpoints share.
#include "sampling/presets.h"
#include "server/api_test_fixture.h"

namespace vitrine {
namespace {

using test::ApiTest;
using test::FakeExchange;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kComplete = "/v1/completions";

TEST_F(ApiTest, TokenizeAndBack) {
  json::object out = get("/tokenize", R"({"content":"a b","with_pieces":true})");
  EXPECT_EQ(out["tokens"], json::value({0, 4, 56, 5}));
  EXPECT_EQ(out["count"], 4);
  EXPECT_EQ(out["pieces"].at(2), " ");
  EXPECT_EQ(
      get("/tokenize", R"({"text":"</s>","add_special":false,"parse_special":true})")["tokens"],
      json::value({1}));
  EXPECT_EQ(get("/detokenize", R"({"tokens":[4,56,5]})")["content"], "a b");
  EXPECT_EQ(get("/detokenize", R"({"tokens":[]})")["content"], "");
  for (const char* bad : {"{}", R"({"content":5})", R"({"content":"a","text":"b"})", "x"})
    EXPECT_EQ(call("/tokenize", bad)->status, 400) << bad;
  for (const char* bad : {"{}", R"({"tokens":"a"})", R"({"tokens":[64]})", R"({"tokens":[-1]})"})
    EXPECT_EQ(call("/detokenize", bad)->status, 400) << bad;
}

TEST_F(ApiTest, ModelsHealthMetricsInfo) {
  EXPECT_EQ(get("/v1/models")["data"].at(0).at("id"), "tiny");
  EXPECT_EQ(get("/v1/models/tiny")["object"], "model");
  EXPECT_EQ(get("/v1/models/t%69ny")["id"], "tiny");
  EXPECT_EQ(call("/v1/models/other")->status, 404);
  EXPECT_EQ(get("/health")["status"], "ok");
  EXPECT_EQ(call("/ready")->status, 200);
  get(kComplete, R"({"prompt":"abc","max_tokens":5,"ignore_eos":true})");
  auto metrics = call("/metrics");
  EXPECT_THAT(metrics->content_type, StartsWith("text/plain; version=0.0.4"));
  EXPECT_THAT(metrics->body, HasSubstr("vitrine:generation_tokens_total{model_name=\"tiny\"} 5\n"));
  EXPECT_THAT(
      metrics->body,
      HasSubstr(
          "vitrine:request_success_total{model_name=\"tiny\",finished_reason=\"length\"} 1\n"));
  json::object info = get("/api/info");
  EXPECT_EQ(info["version"], "9.9.9");
  EXPECT_EQ(info["model"].at("vocab"), 64);
  EXPECT_EQ(info["limits"].at("context"), 256);
  // What the page's calculator multiplies.
  EXPECT_EQ(info["model"].at("kv_heads"), info["memory"].at("groups").at(0).at("kv_heads"));
  EXPECT_EQ(info["model"].at("head_dim"), info["memory"].at("groups").at(0).at("key_width"));
  std::int64_t bytes = 0;
  for (const json::value& g : info["memory"].at("groups").as_array()) {
    auto of = [&](const char* name) { return g.at(name).to_number<std::int64_t>(); };
    const std::int64_t position =
        of("layers") * of("kv_heads") * (of("key_width") + of("value_width")) * 2;
    const auto size = info["options"].at("page_size").to_number<std::int64_t>();
    EXPECT_GT(position, 0);
    EXPECT_GE(of("page_bytes"), position * size);
    EXPECT_EQ(of("window"), 0);
    bytes += of("page_bytes") * (of("pages") + of("spare_pages"));
  }
  EXPECT_EQ(info["options"].at("kv_type"), "f16");
  EXPECT_EQ(info["memory"].at("kv_bytes"), bytes);
  EXPECT_EQ(info["chat"].at("template"), "built in (ChatML)");
  EXPECT_EQ(info["chat"].at("tool_calls"), "hermes");
  EXPECT_EQ(info["backend"].at("name"), "cpu");
  ASSERT_EQ(info["samplers"].as_array().size(), ordered_samplers().size());
  EXPECT_EQ(info["samplers"].at(7).at("name"), "temperature");
  EXPECT_EQ(info["samplers"].at(7).at("params").at(0).at("neutral").to_number<double>(), 1);
  ASSERT_EQ(info["presets"].as_array().size(), all_presets().size());
  EXPECT_EQ(info["presets"].at(0).at("values").at("top_p").to_number<double>(), 0.95);
}

TEST_F(ApiTest, RequestsByIdAndLabel) {
  get(kComplete, R"({"prompt":"abc","max_tokens":5,"n":2,"ignore_eos":true})");
  FakeExchange x(io, R"({"prompt":"abc","max_tokens":50,"ignore_eos":true})");
  x.mutable_request().id = "req-2";
  begin(x, kComplete);
  turn();
  for (int i = 0; i < 4; ++i) engine->step(), turn();
  FakeExchange list(io, ""), snapshot(io, ""), live(io, "");
  begin(list, "/api/requests");
  begin(snapshot, "/api/snapshot");
  turn();
  json::value all = json::parse(list.body);
  ASSERT_EQ(all.at("ended").as_array().size(), 2u);
  ASSERT_EQ(all.at("live").as_array().size(), 1u);
  EXPECT_EQ(all.at("live").at(0).at("label"), "req-2");
  EXPECT_EQ(all.at("live").at(0).at("state"), "decode");
  json::value now = json::parse(snapshot.body);
  EXPECT_EQ(now.at("running").as_array().size(), 1u);
  EXPECT_GT(now.at("pools").at(0).at("used").as_int64(), 0);
  begin(live, "/api/requests/req-2");
  turn();
  EXPECT_EQ(json::parse(live.body).at("requests").at(0).at("records").as_array().size(), 4u);
  finish();
  json::object both = get("/api/requests/req-1");
  ASSERT_EQ(both["requests"].as_array().size(), 2u);
  const json::value& first = both["requests"].at(0);
  EXPECT_EQ(first.at("finish_reason"), "length");
  EXPECT_GE(first.at("records").as_array().size(), 5u);
  json::object by_id = get("/api/requests/" + to_json(first.at("id")));
  EXPECT_EQ(by_id["requests"].as_array().size(), 1u);
  EXPECT_EQ(call("/api/requests/nobody")->status, 404);
}

TEST_F(ApiTest, KeysSeeOnlyTheirOwn) {
  const std::string body = R"({"prompt":"abcdefghijklmnopqrstuvw","max_tokens":2})";
  call(kComplete, body, "ann");
  auto cached = [](const FakeExchange& x) {
    return json::parse(x.body).at("usage").at("prompt_tokens_details").at("cached_tokens");
  };
  EXPECT_EQ(cached(*call(kComplete, body, "bob")), 0);
  EXPECT_EQ(cached(*call(kComplete, body, "ann")), 16);
  auto ended = [&](const char* tenant) {
    return json::parse(call("/api/requests", "", tenant)->body).at("ended").as_array().size();
  };
  EXPECT_EQ(ended("ann"), 2u);
  EXPECT_EQ(ended("bob"), 1u);
  EXPECT_EQ(call("/api/requests/req-1", "", "carl")->status, 404);
}

bool is_page(std::string_view path) { return path == "/" || path.starts_with("/ui/"); }

TEST_F(ApiTest, OnlyHealthAndThePageAreOpen) {
  for (const Route& r : routes) EXPECT_EQ(r.open, r.path == "/health" || is_page(r.path)) << r.path;
}

TEST_F(ApiTest, ErrorsOfTheTransportHaveTheSameShape) {
  HttpBody body = api_service(api).write_error({405, "not here", "method_not_allowed"});
  EXPECT_EQ(body.content_type, "application/json");
  json::value error = json::parse(body.text).at("error");
  EXPECT_EQ(error.at("message"), "not here");
  EXPECT_EQ(error.at("type"), "invalid_request_error");
  EXPECT_EQ(error.at("code"), "method_not_allowed");
  EXPECT_TRUE(error.at("param").is_null());
  EXPECT_EQ(error_body(transport_error({503, "a\xff"})),
            "{\"error\":{\"message\":\"a\xef\xbf\xbd\",\"type\":\"server_error\",\"param\":null,"
            "\"code\":null}}");
}

// Until the engine is there: without it, no endpoint may run that does not say so.
TEST_F(ApiTest, WhileLoadingOnlyHealthReadyAndThePageAnswer) {
  api.loaded = false, api.engine = nullptr;
  api.load_bytes = 25, api.load_bytes_total = 100;
  for (const Endpoint* endpoint : all_endpoints())
    for (std::string path : endpoint->paths) {
      if (path.ends_with('*')) path.back() = 'x';
      auto x = call(path, "{}");
      if (path == "/health" || is_page(path)) {
        EXPECT_EQ(x->status, path == "/ui/x" ? 404 : 200);
        continue;
      }
      EXPECT_EQ(x->status, 503) << path;
      json::object body = json::parse(x->body).as_object();
      if (path == "/ready") {
        EXPECT_EQ(body.at("status"), "loading");
        EXPECT_EQ(body.at("progress").as_double(), 0.25);
        EXPECT_EQ(body.at("bytes"), 25);
        EXPECT_EQ(body.at("bytes_total"), 100);
      } else {
        EXPECT_EQ(body.at("error").at("code"), "loading") << path;
      }
    }
  api.attach(*engine);
  EXPECT_EQ(get("/ready").at("status"), "ready");
}

TEST_F(ApiTest, ReadyNamesFilesThatWereOverwritten) {
  api.changed_files.set(std::make_shared<std::vector<std::string>>(1, "weights.gguf"));
  json::object body = get("/ready");
  EXPECT_EQ(body.at("status"), "degraded");
  EXPECT_EQ(body.at("changed_files"), (json::array{"weights.gguf"}));
  api.changed_files.set(std::make_shared<std::vector<std::string>>());
  EXPECT_EQ(get("/ready").at("status"), "ready");
}

}  // namespace
}  // namespace vitrine
