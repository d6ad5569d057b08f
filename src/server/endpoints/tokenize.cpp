// POST /tokenize: text to token ids.
#include "server/api.h"
#include "server/request/json_fields.h"
#include "tokenizer/tokenizer.h"

namespace vitrine {
namespace {

Reply tokenize(const Api& api, const HttpRequest& http) {
  json::value parsed;
  if (auto error = parse_body(http.body, parsed)) return *error;
  JsonFields fields(parsed.get_object());
  std::optional<std::string> text;
  for (const char* name : {"content", "text", "prompt"}) {
    auto found = fields.text(name);
    if (found && text)
      fields.fail(name, "found beside another text, allowed only one of content, text, prompt");
    if (found) text = std::move(found);
  }
  if (!text) fields.fail("content", "found nothing, allowed a string");
  EncodeOptions options;
  options.add_special = fields.boolean("add_special").value_or(true);
  options.parse_special = fields.boolean("parse_special").value_or(false);
  bool pieces = fields.boolean("with_pieces").value_or(false);
  fields.ignore({"model"});
  if (auto error = fields.close()) return *error;
  if (api.tokenizer == nullptr) return no_tokenizer();
  std::vector<std::int32_t> ids = api.tokenizer->encode(*text, options);
  json::object out{{"tokens", json::array(ids.begin(), ids.end())}, {"count", ids.size()}};
  if (pieces) {
    json::array list;
    for (std::int32_t id : ids) list.emplace_back(api.tokenizer->piece(id));
    out["pieces"] = std::move(list);
  }
  return to_json(out);
}

}  // namespace

extern const Endpoint kEndpoint_tokenize;
const Endpoint kEndpoint_tokenize{"POST", {"/tokenize"}, reply_from_worker<tokenize>};

}  // namespace vitrine
