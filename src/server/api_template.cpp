// POST /apply-template: the prompt of a chat request, without running it.
#include "server/chat_request.h"

namespace vitrine {
namespace {

struct Rendered {
  std::string body;
  std::optional<HttpError> error;
};

Rendered render(const Api& api, const HttpRequest& http) {
  Rendered out;
  json::value body;
  if ((out.error = parse_body(http.body, body))) return out;
  JsonFields fields(body.get_object());
  ChatInput input = read_chat_input(fields);
  input.add_generation_prompt = fields.boolean("add_generation_prompt").value_or(true);
  if (api.chat == nullptr) fields.fail("messages", "the model has no tokenizer, so it has no chat");
  // The rest of a chat request makes no difference to its prompt.
  fields.ignore_rest();
  if ((out.error = fields.close())) return out;
  auto prompt = api.chat->prompt(input);
  if (!prompt.ok()) {
    out.error = template_error(prompt.error());
    return out;
  }
  out.body = to_json(json::object{{"prompt", prompt->text.view()},
                                  {"tokens", json::array(prompt->ids.begin(), prompt->ids.end())},
                                  {"template", api.chat->origin()}});
  return out;
}

}  // namespace

asio::awaitable<void> handle_apply_template(Api& api, Exchange& exchange) {
  auto job = [&] { return render(api, exchange.request()); };
  Rendered rendered = co_await exchange.on_worker(job);
  if (rendered.error)
    co_await reply_error(exchange, *rendered.error);
  else
    co_await reply_json(exchange, std::move(rendered.body));
}

}  // namespace vitrine
