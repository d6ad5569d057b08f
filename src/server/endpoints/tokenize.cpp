// POST /tokenize: text to token ids; with "trace", how they came about.
#include "server/answer/explanation_json.h"
#include "server/answer/pieces.h"
#include "server/request/json_fields.h"
#include "tokenizer/tokenizer.h"

namespace vitrine {
namespace {

Reply tokenize(const Api& api, const HttpRequest& http) {
  json::value parsed;
  if (auto error = parse_body(http.body, parsed)) return *error;
  JsonFields fields(parsed.get_object());
  std::optional<std::string> text;
  const char* field = "content";
  for (const char* name : {"content", "text", "prompt"}) {
    auto found = fields.text(name);
    if (found && text)
      fields.fail(name, "found beside another text, allowed only one of content, text, prompt");
    if (found) text = std::move(found), field = name;
  }
  if (!text) fields.fail("content", "found nothing, allowed a string");
  EncodeOptions options;
  options.add_special = fields.boolean("add_special").value_or(true);
  options.parse_special = fields.boolean("parse_special").value_or(false);
  bool pieces = fields.boolean("with_pieces").value_or(false);
  bool trace = fields.boolean("trace").value_or(false);
  if (trace && text && text->size() > Tokenizer::kMostExplained)
    fields.fail(field, fmt::format("found {} bytes, allowed up to {} with trace", text->size(),
                                   Tokenizer::kMostExplained));
  fields.ignore({"model"});
  if (auto error = fields.close()) return *error;
  if (api.tokenizer == nullptr) return no_tokenizer();
  auto ids =
      std::make_shared<const std::vector<std::int32_t>>(api.tokenizer->encode(*text, options));
  Pieces out;
  out.add("{\"tokens\":").list(ids->size(), [ids](std::string& to, std::size_t i) {
    fmt::format_to(std::back_inserter(to), "{}", (*ids)[i]);
  });
  out.add(fmt::format(",\"count\":{}", ids->size()));
  if (pieces)
    out.add(",\"pieces\":").list(ids->size(), [ids, &api](std::string& to, std::size_t i) {
      append_json(to, api.tokenizer->piece((*ids)[i]));
    });
  std::size_t held = ids->capacity() * sizeof(std::int32_t);
  if (trace) {
    auto told = api.tokenizer->explain(*text, options);
    if (!told.ok()) return bad_field(field, fmt::format("{}: {}", field, told.error().message));
    held += add_explanation(out, std::move(*told));
  }
  out.add("}");
  return reply_in_pieces(std::move(out), held);
}

}  // namespace

extern const Endpoint kEndpoint_tokenize;
const Endpoint kEndpoint_tokenize{"POST", {"/tokenize"}, reply_from_worker<tokenize>};

}  // namespace vitrine
