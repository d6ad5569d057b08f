// GET /api/pages: every page of the KV cache, and the block tables of the sequences that run; with group=G&page=N
// one page, and the tokens whose K and V it holds. For operators: it tells about everybody. Tokens only where a
// recorded request has them in the same place.
#include "engine/engine.h"
#include "server/answer/moment_json.h"
#include "server/answer/text_json.h"
#include "server/api.h"
#include "server/request/query.h"

namespace vitrine {
namespace {

bool has(const Text& text, const PageContent& page, int page_size) {
  const int first = page.index * page_size;
  if (first + static_cast<int>(page.tokens.size()) > text.length()) return false;
  for (std::size_t i = 0; i < page.tokens.size(); ++i)
    if (text.token(first + static_cast<int>(i)) != page.tokens[i]) return false;
  return true;
}

const char* state_name(char state) {
  return state == 'u' ? "used" : state == 'c' ? "cached" : "free";
}

Reply one_page(const Api& api, const HttpRequest& http, std::uint64_t group, std::uint64_t page) {
  const auto& groups = api.engine->memory().groups;
  if (group >= groups.size())
    return bad_field("group",
                     fmt::format("group: found {}, allowed 0 to {}", group, groups.size() - 1),
                     "invalid_value");
  const auto found = api.engine->page(static_cast<int>(group), static_cast<int>(page));
  if (!found)
    return bad_field("page",
                     fmt::format("page: found {}, allowed 0 to {}", page, groups[group].pages - 1),
                     "invalid_value");
  json::object out{{"group", group},
                   {"page", page},
                   {"state", state_name(found->state)},
                   {"holders", found->holders},
                   {"index", found->index < 0 ? json::value() : json::value(found->index)},
                   {"fill", found->tokens.size()}};
  bool known = found->tokens.empty();
  api.texts.visit(http, [&](const Text& text) {
    known = known || has(text, *found, api.engine->memory().page_size);
  });
  out["hidden"] = !known;
  json::array tokens, texts;
  if (known)
    for (const std::int32_t id : found->tokens)
      tokens.emplace_back(id), texts.emplace_back(token_text(api.tokenizer, id));
  out["tokens"] = std::move(tokens), out["texts"] = std::move(texts);
  return to_json(out);
}

Reply pages(const Api& api, const HttpRequest& http) {
  if (!http.rights.is_operator) return operator_only(http.path);
  constexpr std::uint64_t kMost = INT32_MAX, kNone = UINT64_MAX;
  std::uint64_t group = kNone, page = kNone;
  if (auto error = read_query(http.query, {whole_number("group", group, 0, kMost),
                                           whole_number("page", page, 0, kMost)}))
    return *error;
  if (page != kNone) return one_page(api, http, group == kNone ? 0 : group, page);
  if (group != kNone)
    return bad_field("page", "page: found nothing with group, allowed a whole number from 0 on",
                     "invalid_value");
  return to_json(pages_json(api.engine->page_map()));
}

}  // namespace

extern const Endpoint kEndpoint_pages;
const Endpoint kEndpoint_pages{"GET", {"/api/pages"}, reply_from_worker<pages>};

}  // namespace vitrine
