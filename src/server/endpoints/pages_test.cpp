// GET /api/pages against a real engine on a tiny model.
#include <map>

#include "server/api_test_fixture.h"

namespace vitrine {
namespace {

using test::ApiTest;
using test::FakeExchange;

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

}  // namespace
}  // namespace vitrine
