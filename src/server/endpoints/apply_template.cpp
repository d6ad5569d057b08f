// POST /apply-template: the prompt of a chat request, without running it.
#include "server/request/chat_request.h"

namespace vitrine {
namespace {

Reply apply_template(const Api& api, const HttpRequest& http) {
  json::value body;
  if (auto error = parse_body(http.body, body)) return *error;
  JsonFields fields(body.get_object());
  ChatInput input = read_chat_input(fields);
  input.add_generation_prompt = fields.boolean("add_generation_prompt").value_or(true);
  if (api.chat == nullptr) fields.fail("messages", "the model has no tokenizer, so it has no chat");
  // The rest of a chat request makes no difference to its prompt.
  fields.ignore_rest();
  if (auto error = fields.close()) return *error;
  auto prompt = api.chat->prompt(input);
  if (!prompt.ok()) return template_error(prompt.error());
  return to_json(json::object{{"prompt", prompt->text.view()},
                              {"tokens", json::array(prompt->ids.begin(), prompt->ids.end())},
                              {"template", api.chat->origin()}});
}

}  // namespace

extern const Endpoint kEndpoint_apply_template;
const Endpoint kEndpoint_apply_template{
    "POST", {"/apply-template"}, reply_from_worker<apply_template>};

}  // namespace vitrine
