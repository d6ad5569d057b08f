// GET /api/pages: every page of the KV cache, and the block tables of the sequences that run. For operators:
// it tells about everybody.
#include "base/json.h"
#include "engine/engine.h"
#include "server/api.h"

namespace vitrine {
namespace {

Reply pages(const Api& api, const HttpRequest& http) {
  if (!http.rights.is_operator) return operator_only(http.path);
  PageMap map = api.engine->page_map();
  json::array groups, tables;
  for (PageMap::Group& g : map.groups)
    groups.push_back(json::object{
        {"window", g.window}, {"page_size", g.page_size}, {"pages", std::move(g.pages)}});
  for (const PageMap::Table& t : map.tables)
    tables.push_back(json::object{{"id", t.sequence},
                                  {"slot", t.slot},
                                  {"group", t.group},
                                  {"length", t.length},
                                  {"pages", json::array(t.pages.begin(), t.pages.end())}});
  return to_json(json::object{{"groups", std::move(groups)}, {"tables", std::move(tables)}});
}

}  // namespace

extern const Endpoint kEndpoint_pages;
const Endpoint kEndpoint_pages{"GET", {"/api/pages"}, reply_from_worker<pages>};

}  // namespace vitrine
