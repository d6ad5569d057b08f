// GET /api/pages against a real engine on a tiny model.
#include <map>

#include "server/recorded_testing.h"

namespace vitrine {
namespace {

using test::ApiTest;
using test::FakeExchange;
using ::testing::HasSubstr;

// Four answers to one prompt that ends inside a page: its full pages are held four times, and of the begun
// one three copies are made, since the last holder keeps it.
TEST_F(ApiTest, PagesAreHeldByAsManyTablesAsTheyHaveHolders) {
  FakeExchange running(io, R"({"prompt":"abcdefghijklmnopqrstuvwxyz","max_tokens":20,"n":4})");
  begin(running, "/v1/completions");
  for (int i = 0; i < 4; ++i) turn(), engine->step();
  FakeExchange x(io, "");
  begin(x, "/api/pages");
  turn();
  const json::value map = json::parse(x.body);
  const std::string states(map.at("groups").at(0).at("pages").as_string());
  const Snapshot s = engine->snapshot();
  EXPECT_EQ(std::count(states.begin(), states.end(), '.'), s.pools[0].free);
  EXPECT_EQ(std::count(states.begin(), states.end(), 'c'), s.pools[0].cached);
  EXPECT_EQ(std::count(states.begin(), states.end(), 'u'), s.pools[0].used);
  std::map<std::int64_t, int> holders;
  ASSERT_EQ(map.at("tables").as_array().size(), 4u);
  for (const json::value& table : map.at("tables").as_array())
    for (const json::value& page : table.at("pages").as_array()) ++holders[page.as_int64()];
  int shared = 0;
  for (auto [page, count] : holders) {
    EXPECT_EQ(states[page], 'u');
    EXPECT_TRUE(count == 1 || count == 4) << count;
    shared += count > 1;
  }
  EXPECT_EQ(static_cast<int>(holders.size()), s.pools[0].used);
  EXPECT_EQ(shared, s.pools[0].shared);
  EXPECT_GT(shared, 0);
  int copies = 0;
  for (const StepRecord& r : engine->steps_since(0)) copies += r.pages_copied;
  EXPECT_EQ(copies, 3);
  EXPECT_EQ(call("/api/pages", "", "ann")->status, 403);
  finish();
}

class OnePage : public test::RecordedTest {
 protected:
  std::unique_ptr<FakeExchange> ask(const std::string& query) {
    auto x = std::make_unique<FakeExchange>(io, "");
    x->mutable_request().query = query;
    begin(*x, "/api/pages");
    finish();
    return x;
  }
  json::value page(int number) {
    auto x = ask(fmt::format("group=0&page={}", number));
    EXPECT_EQ(x->status, 200) << x->body;
    return json::parse(x->body);
  }
};

// Every page that a recorded request filled tells its tokens, the others that they are hidden.
TEST_F(OnePage, TellsTokensOfRecordedRequestsOnly) {
  const auto ids =
      record("kept", R"("prompt":"abcdefghijklmnopqrstuvwxyzabcdefgh","max_tokens":3)");
  call("/v1/completions", R"({"prompt":"zyxwvutsrqponmlkjihgfedcbazyxwvu","max_tokens":3})");
  const PageMap::Group group = engine->page_map().groups[0];
  int told = 0, hidden = 0;
  for (int i = 0; i < static_cast<int>(group.pages.size()); ++i) {
    const json::value one = page(i);
    const auto& tokens = one.at("tokens").as_array();
    if (group.pages[i] == '.') {
      EXPECT_EQ(one.at("state"), "free");
      EXPECT_TRUE(one.at("index").is_null() && tokens.empty());
      EXPECT_FALSE(one.at("hidden").as_bool());
      continue;
    }
    EXPECT_EQ(one.at("state"), "cached");
    EXPECT_EQ(one.at("fill").as_int64(), group.page_size);
    hidden += one.at("hidden").as_bool();
    if (one.at("hidden").as_bool()) {
      EXPECT_TRUE(tokens.empty() && one.at("texts").as_array().empty());
      continue;
    }
    ++told;
    const auto first = one.at("index").as_int64() * group.page_size;
    ASSERT_EQ(tokens.size(), static_cast<std::size_t>(group.page_size));
    for (std::size_t k = 0; k < tokens.size(); ++k)
      EXPECT_EQ(tokens[k].as_int64(), ids.at(static_cast<std::size_t>(first) + k));
  }
  EXPECT_GT(told, 0);
  EXPECT_GT(hidden, 0);
}

// While it fills, a page tells what is computed of it.
TEST_F(OnePage, TellsWhatARunningRequestHasInIt) {
  FakeExchange running(
      io, R"({"prompt":"abcdefg","max_tokens":12,"ignore_eos":true,"vitrine":{"record":true}})");
  begin(running, "/v1/completions");
  for (int i = 0; i < 4; ++i) turn(), engine->step();
  turn();
  const PageMap map = engine->page_map();
  ASSERT_EQ(map.tables.size(), 1u);
  const int last = static_cast<int>(map.tables[0].pages.size()) - 1;
  const auto found = engine->page(0, map.tables[0].pages[static_cast<std::size_t>(last)]);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->state, 'u');
  EXPECT_EQ(found->index, last);
  EXPECT_EQ(static_cast<int>(found->tokens.size()),
            map.tables[0].length - last * map.groups[0].page_size);
  finish();
}

TEST_F(OnePage, RefusesWhatIsNotThere) {
  EXPECT_THAT(ask("group=7&page=0")->body, HasSubstr("group: found 7, allowed 0 to 0"));
  EXPECT_THAT(ask("page=1000000")->body, HasSubstr("page: found 1000000, allowed 0 to "));
  for (const char* query : {"group=0", "page=-1", "page=99999999999999999999", "pages=1", "page="})
    EXPECT_EQ(ask(query)->status, 400) << query;
}

}  // namespace
}  // namespace vitrine
