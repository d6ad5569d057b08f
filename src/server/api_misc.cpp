// Models, tokens, health.
#include "server/api.h"
#include "server/json_fields.h"

namespace vitrine {
namespace {

// A body as JSON, or an error.
struct Made {
  std::string body;
  std::optional<HttpError> error;
};

asio::awaitable<void> reply_made(Exchange& exchange, Made made) {
  if (made.error) return reply_error(exchange, *made.error);
  return reply_json(exchange, std::move(made.body));
}

json::object model_json(const Api& api) {
  return {{"id", api.model_name},
          {"object", "model"},
          {"created", api.started_unix},
          {"owned_by", "vitrine"},
          {"max_model_len", api.context}};
}

std::string percent_decoded(std::string_view text) {
  auto hex = [](char c) {
    return c >= '0' && c <= '9'                 ? c - '0'
           : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                : -1;
  };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    bool escape =
        text[i] == '%' && i + 2 < text.size() && hex(text[i + 1]) >= 0 && hex(text[i + 2]) >= 0;
    out += escape ? static_cast<char>(hex(text[i + 1]) * 16 + hex(text[i + 2])) : text[i];
    if (escape) i += 2;
  }
  return out;
}

HttpError no_tokenizer() { return bad_field("", "the model has no tokenizer", "no_tokenizer"); }

Made tokenize(const Api& api, const std::string& body) {
  json::value parsed;
  if (auto error = parse_body(body, parsed)) return {"", error};
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
  if (auto error = fields.close()) return {"", error};
  if (api.tokenizer == nullptr) return {"", no_tokenizer()};
  std::vector<std::int32_t> ids = api.tokenizer->encode(*text, options);
  json::object out{{"tokens", json::array(ids.begin(), ids.end())}, {"count", ids.size()}};
  if (pieces) {
    json::array list;
    for (std::int32_t id : ids) list.emplace_back(api.tokenizer->piece(id));
    out["pieces"] = std::move(list);
  }
  return {to_json(out), std::nullopt};
}

Made detokenize(const Api& api, const std::string& body) {
  json::value parsed;
  if (auto error = parse_body(body, parsed)) return {"", error};
  if (api.tokenizer == nullptr) return {"", no_tokenizer()};
  JsonFields fields(parsed.get_object());
  const json::value* tokens = fields.any("tokens");
  auto ids = fields.ids("tokens", JsonFields::kAnyBytes, api.vocab);
  if (tokens == nullptr) fields.fail("tokens", "found nothing, allowed a list of token ids");
  bool skip = fields.boolean("skip_special").value_or(false);
  fields.ignore({"model"});
  if (auto error = fields.close()) return {"", error};
  return {to_json(json::object{{"content", api.tokenizer->decode(ids, skip)}}), std::nullopt};
}

}  // namespace

asio::awaitable<void> handle_models(Api& api, Exchange& exchange) {
  json::object body{{"object", "list"}, {"data", json::array{model_json(api)}}};
  return reply_json(exchange, to_json(body));
}

asio::awaitable<void> handle_model(Api& api, Exchange& exchange) {
  std::string name = percent_decoded(exchange.request().argument);
  if (name == api.model_name) return reply_json(exchange, to_json(model_json(api)));
  HttpError error{404, "invalid_request_error",
                  fmt::format("model: found {}, this server has \"{}\"",
                              describe(json::value(name)), api.model_name),
                  "model", "model_not_found"};
  return reply_error(exchange, error);
}

asio::awaitable<void> handle_tokenize(Api& api, Exchange& exchange) {
  auto job = [&] { return tokenize(api, exchange.request().body); };
  Made made = co_await exchange.on_worker(job);
  co_await reply_made(exchange, std::move(made));
}

asio::awaitable<void> handle_detokenize(Api& api, Exchange& exchange) {
  auto job = [&] { return detokenize(api, exchange.request().body); };
  Made made = co_await exchange.on_worker(job);
  co_await reply_made(exchange, std::move(made));
}

asio::awaitable<void> handle_health(Api&, Exchange& exchange) {
  return reply_json(exchange, R"({"status":"ok"})");
}

asio::awaitable<void> handle_ready(Api& api, Exchange& exchange) {
  if (!api.draining) return reply_json(exchange, R"({"status":"ready"})");
  return reply_error(exchange, shutting_down());
}

}  // namespace vitrine
