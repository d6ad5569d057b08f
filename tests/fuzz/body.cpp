// A body, for every endpoint that takes one, on a real engine with a tiny model: one answer, and
// afterwards nothing is left of it. The first byte has options, the first line the endpoint's path.
#include "base/log.h"
#include "fuzz/fuzz.h"
#include "server/api_test_fixture.h"

using namespace vitrine;

namespace {

constexpr int kMostSteps = 6;            // then the client leaves
constexpr std::int64_t kKept = 4 << 20;  // bytes of recorded requests

class Server : public test::ApiTest {
 public:
  Server() {
    set_log_level(LogLevel::kError);
    GTEST_FLAG_SET(break_on_failure, true);
    for (const Route& route : routes)
      if (route.method == "POST") paths_.push_back(route.path);
    VT_CHECK(paths_.size() > 4);
    api.texts.configure(RecordMode::kAsked, kKept);
  }
  void TestBody() override {}

  void ask(fuzz::Input input) {
    const std::uint8_t choice = input.take();
    const std::string_view text = input.text();
    const std::size_t line = std::min(text.find('\n'), text.size());
    auto path = std::find(paths_.begin(), paths_.end(), text.substr(0, line));
    if (path == paths_.end()) path = paths_.begin() + static_cast<long>(line % paths_.size());
    record_stars();
    test::FakeExchange exchange(io, std::string(text.substr(std::min(line + 1, text.size()))));
    if ((choice & 1) != 0) {
      exchange.mutable_request().tenant = "t";
      exchange.mutable_request().rights = {.is_operator = false, .min_priority = 0};
    }
    begin(exchange, *path);
    int steps = 0;
    while (turn(), open > 0) {
      engine->step();
      if (++steps > kMostSteps) exchange.leave();
    }
    while (engine->step()) continue;
    VT_CHECK(exchange.status != 0 || exchange.gone());
    // What a path names is there.
    VT_CHECK(exchange.status != 404 || path->find('*') == path->npos, "{}", exchange.body);
    // The tiny model's vocabulary cannot spell what every constraint asks for.
    VT_CHECK(exchange.status != 500 || exchange.body.find("generation_failed") != std::string::npos,
             "{}", exchange.body);
    if (exchange.content_type == "application/json" && (!exchange.streaming || exchange.ended)) {
      boost::system::error_code error;
      json::parse(exchange.body, error);
      VT_CHECK(!error, "{}", exchange.body);
    }
    VT_CHECK(engine->pages_used() == std::vector<int>{0});
    VT_CHECK(api.live.size() == 0);
  }

 private:
  // For the paths that name a request: one of each key, which may have had to go.
  void record_stars() {
    HttpRequest http;
    for (const char* tenant : {"", "t"}) {
      http.tenant = tenant, http.rights.is_operator = *tenant == 0;
      if (api.texts.find("*", http).empty()) record_star(tenant);
    }
  }

  std::vector<std::string> paths_;
};

}  // namespace

void fuzz_one(fuzz::Input input) {
  static Server server;
  server.ask(input);
}
