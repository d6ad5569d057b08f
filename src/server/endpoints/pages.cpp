// GET /api/pages: every page of the KV cache, and the block tables of the sequences that run. For operators:
// it tells about everybody.
#include "engine/engine.h"
#include "server/answer/moment_json.h"
#include "server/api.h"

namespace vitrine {
namespace {

Reply pages(const Api& api, const HttpRequest& http) {
  if (!http.rights.is_operator) return operator_only(http.path);
  return to_json(pages_json(api.engine->page_map()));
}

}  // namespace

extern const Endpoint kEndpoint_pages;
const Endpoint kEndpoint_pages{"GET", {"/api/pages"}, reply_from_worker<pages>};

}  // namespace vitrine
