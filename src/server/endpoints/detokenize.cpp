// POST /detokenize: token ids to text.
#include "server/answer/pieces.h"
#include "server/request/json_fields.h"
#include "tokenizer/stream_decoder.h"

namespace vitrine {
namespace {

Reply detokenize(const Api& api, const HttpRequest& http) {
  json::value parsed;
  if (auto error = parse_body(http.body, parsed)) return *error;
  if (api.tokenizer == nullptr) return no_tokenizer();
  JsonFields fields(parsed.get_object());
  const json::value* tokens = fields.any("tokens");
  auto ids = std::make_shared<const std::vector<std::int32_t>>(
      fields.ids("tokens", JsonFields::kAnyBytes, api.vocab));
  if (tokens == nullptr) fields.fail("tokens", "found nothing, allowed a list of token ids");
  bool skip = fields.boolean("skip_special").value_or(false);
  fields.ignore({"model"});
  if (auto error = fields.close()) return *error;
  // A token may be long text, so the whole may be many times the request.
  auto decoder = std::make_shared<StreamDecoder>(*api.tokenizer, skip);
  Pieces out;
  out.add("{\"content\":\"");
  out.add(ids->size(), [ids, decoder](std::string& to, std::size_t i) {
    append_json_piece(to, decoder->push((*ids)[i]));
  });
  out.add(1, [decoder](std::string& to, std::size_t) { append_json_piece(to, decoder->finish()); });
  out.add("\"}");
  return reply_in_pieces(std::move(out), ids->capacity() * sizeof(std::int32_t));
}

}  // namespace

extern const Endpoint kEndpoint_detokenize;
const Endpoint kEndpoint_detokenize{"POST", {"/detokenize"}, reply_from_worker<detokenize>};

}  // namespace vitrine
