// One plain key tries every route that the server has, with every method, on what another key has done and is
// doing: nothing in any answer is the other's, and nothing of the other's changes.
#include "server/recorded_testing.h"

namespace vitrine {
namespace {

using test::ApiTest;
using test::FakeExchange;
using test::kComplete;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kSecret = "thequickbrownfoxjumpsover", kOther = "fiveboxingwizardsjumpquick";
// Full pages of it are cached: 16 tokens with the one that begins it.
const std::string kPageOfSecret = kSecret.substr(0, 15);

struct Told {
  int status = 0;
  std::string body, headers;
  bool operator==(const Told&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Told& told) {
  return out << told.status << " " << told.headers << " " << told.body.substr(0, 2000);
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

class CrawlTest : public ApiTest {
 protected:
  struct Who {
    std::string tenant;
    bool all = false;
  };
  std::unique_ptr<FakeExchange> start(const Who& who, const std::string& method,
                                      const std::string& path, const std::string& body,
                                      const std::string& id) {
    const std::size_t query = path.find('?');
    auto x = std::make_unique<FakeExchange>(io, body);
    HttpRequest& http = x->mutable_request();
    http.method = method, http.tenant = who.tenant, http.id = id;
    http.rights = {.is_operator = who.all, .min_priority = 0};
    if (query != path.npos) http.query = path.substr(query + 1);
    begin(*x, path.substr(0, query));
    return x;
  }
  static bool over(const FakeExchange& x) { return x.status != 0 && (!x.streaming || x.ended); }
  // Requests of others may run on: only this one's end is waited for.
  Told ask(const Who& who, const std::string& method, const std::string& path,
           const std::string& body = "{}", const std::string& id = "asked") {
    auto x = start(who, method, path, body, id);
    for (int i = 0; i < 2000 && !over(*x); ++i) turn(), engine->step();
    EXPECT_TRUE(over(*x)) << method << " " << path;
    Told out{x->status, x->body, {}};
    for (const auto& [name, value] : x->headers) out.headers += name + ": " + value + "\n";
    kept_.push_back(std::move(x));  // its coroutine may still look at it
    turn();
    return out;
  }

  // Requests of a key in every state: ended and kept, a fork of it, refused, held, preempted or waiting.
  void begin_work(const Who& who, const std::string& name, const std::string& prompt) {
    const std::string kept = R"(,"vitrine":{"record":true}})";
    const std::string held = R"(,"vitrine":{"record":true,"allow":1}})";
    const auto body = [&](const std::string& fields, const std::string& end) {
      return fmt::format(R"({{"prompt":"{}","ignore_eos":true,)", prompt) + fields + end;
    };
    EXPECT_EQ(ask(who, "POST", kComplete, body(R"("max_tokens":6)", kept), name + "-ended").status,
              200);
    EXPECT_EQ(ask(who, "POST", "/api/requests/" + name + "-ended/fork",
                  R"({"position":27,"max_tokens":4})", name + "-forks")
                  .status,
              200);
    EXPECT_EQ(ask(who, "POST", kComplete, body(R"("max_tokens":-1)", kept), name + "-wrong").status,
              400);
    kept_.push_back(
        start(who, "POST", kComplete, body(R"("max_tokens":40)", held), name + "-holds"));
    kept_.push_back(
        start(who, "POST", kComplete, body(R"("max_tokens":40,"n":9)", held), name + "-waits"));
    for (int i = 0; i < 8; ++i) turn(), engine->step();
  }
  std::vector<std::string> names_of(const std::string& name) {
    return {name + "-ended", name + "-forks", name + "-wrong",
            name + "-holds", name + "-waits", "10"};
  }
  // The clients leave.
  void end_work() {
    for (auto& x : kept_) x->leave();
    finish();
  }

  // What is sent to a route, with a body that it takes and one that it does not.
  static std::vector<std::string> bodies(const Route& r) {
    static const std::map<std::string, std::string> kGood{
        {"/v1/completions", R"({"prompt":"abc","max_tokens":2})"},
        {"/v1/chat/completions",
         R"({"messages":[{"role":"user","content":"abc"}],"max_tokens":2})"},
        {"/v1/embeddings", R"({"input":"abc"})"},
        {"/apply-template", R"({"messages":[{"role":"user","content":"abc"}],"spans":true})"},
        {"/tokenize", R"({"content":"abc","trace":true})"},
        {"/detokenize", R"({"tokens":[4,5]})"},
        {"/api/requests/*/stages", R"({"position":27,"draws":3})"},
        {"/api/requests/*/scan", R"({"from":27})"},
        {"/api/requests/*/fork", R"({"position":27,"max_tokens":2,"n":2})"},
        {"/api/requests/*/hold", R"({"release":true})"},
        {"/api/lab/company", R"({"n":1,"max_tokens":1})"},
        {"/api/peak", R"({"again":true})"}};
    std::vector<std::string> out{"{}"};
    if (r.method == "GET" || r.method == "DELETE") return {""};
    const auto found = kGood.find(r.path);
    EXPECT_NE(found, kGood.end()) << r.path << ": add a body that it takes to this test";
    if (found != kGood.end()) out.push_back(found->second);
    return out;
  }
  static std::vector<std::string> queries(const Route& r) {
    std::vector<std::string> out{""};
    if (r.method != "GET") return out;
    for (const char* query : {"?full=1", "?from=0", "?depth=2", "?choice=0", "?format=perfetto",
                              "?format=otlp", "?format=otlp&text=1", "?format=vtr", "?limit=3"})
      out.emplace_back(query);
    return out;
  }
  // Every route as `who`, for the other's names and for names of equal length that nobody has: the same answers.
  void crawl(const Who& who, const std::string& other, const std::string& secret) {
    int tried = 0;
    for (const Route& r : routes) {
      const std::size_t star = r.path.find('*');
      for (const std::string& body : bodies(r))
        for (const std::string& query : queries(r)) {
          const std::string what = fmt::format("{} {}{} {}", r.method, r.path, query, body);
          if (star == r.path.npos) {
            expect_nothing_of(ask(who, r.method, r.path + query, body), other, secret, what);
            ++tried;
            continue;
          }
          for (const std::string& name : names_of(other)) {
            const std::string nobody(name.size(), name == "10" ? '9' : 'z');
            auto at = [&](const std::string& label) {
              Told told =
                  ask(who, r.method, std::string(r.path).replace(star, 1, label) + query, body);
              told.body = replaced(told.body, label, "NAME");
              told.headers = replaced(told.headers, label, "NAME");
              return told;
            };
            const Told told = at(name);
            EXPECT_EQ(told, at(nobody)) << what << " " << name;
            expect_nothing_of(told, other, secret, what + " " + name);
            tried += 2;
          }
        }
    }
    EXPECT_GT(tried, 200);
  }
  void expect_nothing_of(const Told& told, const std::string& other, const std::string& secret,
                         const std::string& what) {
    for (const std::string& text : {secret, secret.substr(0, 15), secret.substr(16), other + "-"})
      EXPECT_THAT(told.headers + told.body, Not(HasSubstr(text))) << what;
    // Numbers count everybody's requests, and pages are everybody's.
    for (const char* field :
         {"\"pools\"", "\"holders\"", "\"tables\"", "\"batch_mean\"", "\"company\":"})
      EXPECT_THAT(told.body, Not(HasSubstr(field))) << what;
  }
  // What a key sees of its own.
  std::vector<Told> own(const Who& who, const std::string& name) {
    std::vector<Told> out;
    for (const char* path : {"-ended/tokens", "-forks", "-wrong"})
      out.push_back(ask(who, "GET", "/api/requests/" + name + path));
    for (const char* label : {"-holds", "-waits"})
      out.push_back(ask(who, "GET", "/api/requests/" + name + label + "/tokens"));
    return out;
  }

  std::vector<std::unique_ptr<FakeExchange>> kept_;
};

TEST_F(CrawlTest, NoRouteTellsOneKeyAboutAnother) {
  const Who ann{"ann-key"}, bob{"bob-key"}, boss{"boss", true};
  begin_work(ann, "ann", kSecret);
  const std::vector<Told> before = own(ann, "ann");
  for (const Told& told : before) EXPECT_EQ(told.status, 200) << told;
  crawl(bob, "ann", kSecret);
  EXPECT_EQ(own(ann, "ann"), before) << "nothing was forgotten, released or forked";
  // What one key could find is there: an operator sees it, and its owner.
  EXPECT_THAT(ask(boss, "GET", "/api/requests").body, HasSubstr("ann-holds"));
  EXPECT_THAT(ask(boss, "GET", "/api/tree").body, HasSubstr(kPageOfSecret));
  EXPECT_THAT(ask(boss, "GET", "/api/requests/ann-ended/export?format=otlp&text=1").body,
              HasSubstr(kSecret));
  EXPECT_THAT(ask(ann, "GET", "/api/requests/ann-ended/export?format=otlp&text=1").body,
              HasSubstr(kSecret));
  EXPECT_EQ(ask(boss, "GET", "/api/requests/10").status, 200);
  // And the other way round, now that both have something.
  begin_work(bob, "bob", kOther);
  crawl(ann, "bob", kOther);
  end_work();
}

}  // namespace
}  // namespace vitrine
