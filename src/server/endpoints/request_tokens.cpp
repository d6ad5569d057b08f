// GET /api/requests/ID/tokens: what a recorded request said and was told, token by token.
#include "server/answer/pieces.h"
#include "server/answer/text_json.h"
#include "server/api.h"
#include "server/request/kept_text.h"

namespace vitrine {
namespace {

Reply tokens(const Api& api, const HttpRequest& http) {
  auto text = std::make_shared<Text>();
  if (auto error = find_text(api, http, *text)) return *error;
  const std::string head =
      to_json(text_json(*text, api.texts.forks_of(text->id), http.rights.is_operator));
  Pieces out;
  out.add(head.substr(0, head.size() - 1) + ",\"tokens\":");
  out.list(static_cast<std::size_t>(text->length()),
           [text, tokenizer = api.tokenizer](std::string& to, std::size_t i) {
             to += to_json(text_token_json(*text, tokenizer, static_cast<int>(i)));
           });
  out.add("}");
  return reply_in_pieces(std::move(out),
                         text->bytes() + text->prompt->size() * sizeof(std::int32_t));
}

}  // namespace

extern const Endpoint kEndpoint_request_tokens;
const Endpoint kEndpoint_request_tokens{
    "GET", {"/api/requests/*/tokens"}, reply_from_worker<tokens>};

}  // namespace vitrine
