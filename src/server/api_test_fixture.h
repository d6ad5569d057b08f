// A server's API on a real engine with a tiny model, without sockets. Exchange and engine take
// turns on one thread, so that every test happens in one order.
#pragma once

#include <gmock/gmock.h>

#include "server/api_testing.h"

namespace vitrine::test {

class ApiTest : public ::testing::Test {
 protected:
  explicit ApiTest(int max_queue = 512) {
    static const std::shared_ptr<const ModelFile> kModel = tiny_model();
    EngineOptions options;
    options.backend = "cpu", options.threads = 1, options.sequences = 8, options.page_size = 16;
    options.context = 256, options.max_queue = max_queue;
    auto made = Engine::create(kModel, options);
    EXPECT_TRUE(made.ok()) << made.error().message;
    engine = std::move(made).value();
    api.version = "9.9.9";
    api.model_name = "tiny";
    api.tokenizer = tokenizer.get();
    api.chat = chat_template.get();
    EXPECT_TRUE(api.defaults.set("temperature", 0).ok());
    EXPECT_TRUE(api.defaults.set_logit_bias({{kNanToken, -100}}).ok());
    api.attach(*engine);
    routes = api_service(api).routes;
  }

  // By path alone where only one method is served there.
  const Route& route(const std::string& path, const std::string& method) {
    if (const Route* r = find_route(routes, method, path)) return *r;
    if (const Route* r = find_route(routes, "GET", path)) return *r;
    ADD_FAILURE() << method << " " << path;
    return routes[0];
  }
  void begin(FakeExchange& x, const std::string& path) {
    HttpRequest& request = x.mutable_request();
    const Route& r = route(path, request.method);
    request.path = path;
    request.argument = route_argument(r.path, request.path).value_or("");
    ++open;
    asio::co_spawn(io, r.handle(x), [this](std::exception_ptr error) {
      EXPECT_FALSE(error);
      --open;
    });
  }
  void turn() {
    io.restart();
    io.poll();
  }
  void finish() {
    while (turn(), open > 0) engine->step();
  }
  std::unique_ptr<FakeExchange> call(const std::string& path, const std::string& body = "",
                                     const std::string& tenant = "",
                                     const std::string& method = "POST") {
    auto x = std::make_unique<FakeExchange>(io, body);
    x->mutable_request().method = method;
    x->mutable_request().tenant = tenant;
    if (!tenant.empty()) x->mutable_request().rights = {.is_operator = false, .min_priority = 0};
    begin(*x, path);
    finish();
    return x;
  }
  // A recorded request with the label "*", for paths as routes have them.
  void record_star(const std::string& tenant = "") {
    FakeExchange x(io, R"({"prompt":"abc","max_tokens":8,"vitrine":{"record":true}})");
    x.mutable_request().id = "*";
    x.mutable_request().tenant = tenant;
    if (!tenant.empty()) x.mutable_request().rights = {.is_operator = false, .min_priority = 0};
    begin(x, "/v1/completions");
    finish();
    EXPECT_EQ(x.status, 200) << x.body;
  }
  json::object get(const std::string& path, const std::string& body = "") {
    auto x = call(path, body);
    EXPECT_EQ(x->status, 200) << x->body;
    return json::parse(x->body).get_object();
  }
  // The frames' JSON; the last one must be [DONE].
  static std::vector<json::object> frames(const FakeExchange& x, bool done = true) {
    std::vector<json::object> out;
    std::string_view rest = x.body;
    bool ended = false;
    while (!rest.empty()) {
      EXPECT_EQ(rest.substr(0, 6), "data: ");
      EXPECT_FALSE(ended);
      std::size_t end = rest.find("\n\n");
      std::string_view data = rest.substr(6, end - 6);
      if (data == "[DONE]")
        ended = true;
      else
        out.push_back(json::parse(data).get_object());
      rest.remove_prefix(end + 2);
    }
    EXPECT_EQ(ended, done);
    return out;
  }
  static std::string text_of(const json::value& choice) {
    return std::string(choice.at("text").as_string());
  }
  // The engine's own greedy answer.
  std::vector<std::int32_t> tokens(std::vector<std::int32_t> prompt, int n) {
    Request r;
    r.prompt = std::move(prompt), r.max_tokens = n, r.sampling = api.defaults, r.ignore_eos = true;
    auto stream = *engine->submit(std::move(r));
    while (engine->step()) continue;
    std::vector<std::int32_t> out;
    while (auto event = stream->next()) out.push_back(event->token);
    return out;
  }
  std::string text(const std::vector<std::int32_t>& ids) { return tokenizer->decode(ids, true); }

  std::unique_ptr<Tokenizer> tokenizer = tiny_tokenizer();
  std::unique_ptr<ChatTemplate> chat_template = ChatTemplate::chatml(*tokenizer);
  asio::io_context io;
  std::unique_ptr<Engine> engine;
  Api api;
  std::vector<Route> routes;
  int open = 0;
};

}  // namespace vitrine::test
