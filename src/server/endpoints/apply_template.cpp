// POST /apply-template: the prompt of a chat request, without running it; with "spans", which
// message gave which part of it.
#include "server/answer/explanation_json.h"
#include "server/request/chat_request.h"

namespace vitrine {
namespace {

Reply apply_template(const Api& api, const HttpRequest& http) {
  json::value body;
  if (auto error = parse_body(http.body, body)) return *error;
  JsonFields fields(body.get_object());
  ChatInput input = read_chat_input(fields);
  input.add_generation_prompt = fields.boolean("add_generation_prompt").value_or(true);
  const bool spans = fields.boolean("spans").value_or(false);
  if (api.chat == nullptr) fields.fail("messages", "the model has no tokenizer, so it has no chat");
  // The rest of a chat request makes no difference to its prompt.
  fields.ignore_rest();
  if (auto error = fields.close()) return *error;
  auto prompt = api.chat->prompt(input);
  if (!prompt.ok()) return template_error(prompt.error());
  std::optional<PromptSpans> whose;
  if (spans) {
    auto found = prompt_spans(*prompt, input.messages, *api.tokenizer);
    if (!found.ok()) return bad_field("messages", "messages: with spans " + found.error().message);
    whose = std::move(*found);
  }
  auto text = std::make_shared<const std::string>(prompt->text.view());
  auto ids = std::make_shared<const std::vector<std::int32_t>>(std::move(prompt->ids));
  Pieces out;
  out.add("{\"prompt\":").text(text).add(",\"tokens\":");
  out.list(ids->size(), [ids](std::string& to, std::size_t i) {
    fmt::format_to(std::back_inserter(to), "{}", (*ids)[i]);
  });
  out.add(",\"template\":" + to_json(json::value(api.chat->origin())));
  std::size_t held = text->size() + ids->capacity() * sizeof(std::int32_t);
  if (whose) held += add_spans(out, std::move(*whose));
  out.add("}");
  return reply_in_pieces(std::move(out), held);
}

}  // namespace

extern const Endpoint kEndpoint_apply_template;
const Endpoint kEndpoint_apply_template{
    "POST", {"/apply-template"}, reply_from_worker<apply_template>};

}  // namespace vitrine
