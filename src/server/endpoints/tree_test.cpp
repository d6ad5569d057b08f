// GET /api/tree against a real engine on a tiny model.
#include "server/recorded_testing.h"

namespace vitrine {
namespace {

using test::FakeExchange;
using test::RecordedTest;

class TreeTest : public RecordedTest {
 protected:
  std::unique_ptr<FakeExchange> look(const std::string& query, const std::string& tenant = "") {
    FakeExchange* x = new FakeExchange(io, "");
    std::unique_ptr<FakeExchange> out(x);
    x->mutable_request().method = "GET";
    x->mutable_request().query = query;
    x->mutable_request().tenant = tenant;
    if (!tenant.empty()) x->mutable_request().rights = {.is_operator = false, .min_priority = 0};
    begin(*x, "/api/tree");
    turn();
    return out;
  }
  json::object tree(const std::string& query = "") {
    auto x = look(query);
    EXPECT_EQ(x->status, 200) << x->body;
    return json::parse(x->body).get_object();
  }
  void ask(const std::string& prompt, bool kept) {
    auto x = call(
        test::kComplete,
        fmt::format(R"({{"prompt":"{}","max_tokens":1,"vitrine":{{"record":{}}}}})", prompt, kept));
    ASSERT_EQ(x->status, 200) << x->body;
  }
  // With the BOS before it, whole pages of 16: 15 letters fill the first.
  const std::string common = "abcdefghijklmno";
  const std::string one = "pqrstuvwxyzabcde", two = "ZYXWVUTSRQPONMLK";
};

TEST_F(TreeTest, PromptsPartWhereTheyDiffer) {
  EXPECT_TRUE(tree().at("nodes").as_array().empty());
  ask(common + one, true);
  ask(common + two, false);
  const json::object told = tree();
  EXPECT_EQ(told.at("pages").to_number<int>(), 3);
  EXPECT_EQ(told.at("tokens").to_number<int>(), 48);
  EXPECT_EQ(told.at("pages_left_out").to_number<int>(), 0);
  const json::array& nodes = told.at("nodes").as_array();
  ASSERT_EQ(nodes.size(), 3u);
  EXPECT_TRUE(nodes[0].at("parent").is_null());
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(nodes[i].at("tokens").to_number<int>(), 16);
    EXPECT_EQ(nodes[i].at("pages").to_number<int>(), 1);
    EXPECT_EQ(nodes[i].at("holders").to_number<int>(), 0);
    EXPECT_GT(nodes[i].at("last_use_ns").to_number<std::int64_t>(), 0);
    EXPECT_LE(nodes[i].at("last_use_ns").to_number<std::int64_t>(),
              told.at("now_ns").to_number<std::int64_t>());
    if (i > 0) {
      EXPECT_EQ(nodes[i].at("parent").to_number<int>(), 0);
      EXPECT_EQ(nodes[i].at("first").to_number<int>(), 16);
    }
    texts.push_back(nodes[i].at("text").is_null() ? ""
                                                  : std::string(nodes[i].at("text").as_string()));
  }
  EXPECT_EQ(texts[0], "<s>" + common);
  EXPECT_EQ(std::count(texts.begin(), texts.end(), one), 1);
  EXPECT_EQ(std::count(texts.begin(), texts.end(), ""), 1) << "text of a request that is not kept";
}

TEST_F(TreeTest, TextGoesWithTheRecording) {
  FakeExchange x(io, fmt::format(R"({{"prompt":"{}","max_tokens":1,"vitrine":{{"record":true}}}})",
                                 common + one));
  x.mutable_request().id = "kept";
  begin(x, test::kComplete);
  finish();
  EXPECT_EQ(tree().at("nodes").at(0).at("text").as_string(), "<s>" + common + one);
  EXPECT_EQ(call("/api/requests/kept", "", "", "DELETE")->status, 200);
  const json::object told = tree();
  ASSERT_EQ(told.at("nodes").as_array().size(), 1u);
  EXPECT_TRUE(told.at("nodes").at(0).at("text").is_null());
}

TEST_F(TreeTest, HoldersAreTheSequencesThatRun) {
  FakeExchange running(io, fmt::format(R"({{"prompt":"{}","max_tokens":20,"n":3}})", common + one));
  begin(running, test::kComplete);
  for (int i = 0; i < 3; ++i) turn(), engine->step();
  const json::object told = tree();
  EXPECT_EQ(told.at("nodes").at(0).at("holders").to_number<int>(), 3);
  EXPECT_EQ(told.at("nodes").at(0).at("last_use_ns"), told.at("now_ns"));
  finish();
  EXPECT_EQ(tree().at("nodes").at(0).at("holders").to_number<int>(), 0);
}

TEST_F(TreeTest, LimitsAreKept) {
  ask(common + one, true);
  ask(common + two, true);
  json::object roots = tree("depth=0");
  EXPECT_EQ(roots.at("nodes").as_array().size(), 1u);
  EXPECT_EQ(roots.at("pages_left_out").to_number<int>(), 2);
  EXPECT_EQ(tree("min=17").at("nodes").as_array().size(), 1u) << "a page is 16 tokens";
  EXPECT_EQ(tree("min=1073741824").at("nodes").as_array().size(), 0u);
  EXPECT_EQ(tree("depth=64&min=1").at("nodes").as_array().size(), 3u);
}

TEST_F(TreeTest, WrongQueriesAreRefused) {
  for (const char* query : {"depth=65", "depth=-1", "depth=", "depth=1.5",
                            "depth=99999999999999999999", "depth", "min=0", "min=1073741825",
                            "min=a", "min=-1", "deep=1", "text=1", "%64epth=1", "depth=0x10"}) {
    auto x = look(query);
    EXPECT_EQ(x->status, 400) << query << " " << x->body;
  }
}

TEST_F(TreeTest, AnotherKeySeesNothing) {
  ask(common + one, true);
  for (const char* query : {"", "depth=0", "depth=65"}) {
    auto x = look(query, "bob");
    EXPECT_EQ(x->status, 403);
    EXPECT_EQ(x->body.find("abc"), std::string::npos);
  }
}

}  // namespace
}  // namespace vitrine
