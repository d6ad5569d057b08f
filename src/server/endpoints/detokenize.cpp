// POST /detokenize: token ids to text.
#include "server/api.h"
#include "server/request/json_fields.h"
#include "tokenizer/tokenizer.h"

namespace vitrine {
namespace {

Reply detokenize(const Api& api, const HttpRequest& http) {
  json::value parsed;
  if (auto error = parse_body(http.body, parsed)) return *error;
  if (api.tokenizer == nullptr) return no_tokenizer();
  JsonFields fields(parsed.get_object());
  const json::value* tokens = fields.any("tokens");
  auto ids = fields.ids("tokens", JsonFields::kAnyBytes, api.vocab);
  if (tokens == nullptr) fields.fail("tokens", "found nothing, allowed a list of token ids");
  bool skip = fields.boolean("skip_special").value_or(false);
  fields.ignore({"model"});
  if (auto error = fields.close()) return *error;
  return to_json(json::object{{"content", api.tokenizer->decode(ids, skip)}});
}

}  // namespace

extern const Endpoint kEndpoint_detokenize;
const Endpoint kEndpoint_detokenize{"POST", {"/detokenize"}, reply_from_worker<detokenize>};

}  // namespace vitrine
