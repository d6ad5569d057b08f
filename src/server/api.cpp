#include "server/api.h"

#include "server/openai_request.h"

namespace vitrine {

std::uint64_t LiveStreams::add(std::vector<std::shared_ptr<TokenStream>> streams) {
  std::lock_guard lock(mutex_);
  streams_.emplace(next_, std::move(streams));
  return next_++;
}

void LiveStreams::remove(std::uint64_t key) {
  std::lock_guard lock(mutex_);
  streams_.erase(key);
}

void LiveStreams::cancel_all() {
  std::lock_guard lock(mutex_);
  for (auto& [key, streams] : streams_)
    for (auto& stream : streams) stream->cancel();
}

std::size_t LiveStreams::size() const {
  std::lock_guard lock(mutex_);
  return streams_.size();
}

void Api::attach(Engine& served) {
  engine = &served;
  vocab = served.model().vocab;
  context = served.memory().context;
  fingerprint = fmt::format("vitrine-{}-{}", version, served.backend().name());
}

asio::awaitable<void> reply_json(Exchange& exchange, std::string body) {
  return exchange.reply(200, "application/json", std::move(body));
}

asio::awaitable<void> reply_error(Exchange& exchange, const HttpError& error, Headers headers) {
  return exchange.reply(error.status, "application/json", error_body(error), std::move(headers));
}

asio::awaitable<void> reply_refused(Api& api, Exchange& exchange, const Error& refused) {
  HttpError error = engine_error(refused);
  Headers headers;
  if (error.status == 429)
    headers.emplace_back("Retry-After", std::to_string(api.engine->retry_after_seconds()));
  return reply_error(exchange, error, std::move(headers));
}

HttpError shutting_down() {
  return {503, "server_error", "the server is shutting down", "", "shutting_down"};
}

std::vector<Route> api_routes(Api& api) {
  using Handler = asio::awaitable<void> (*)(Api&, Exchange&);
  std::vector<Route> routes;
  auto add = [&](const char* method, const char* path, Handler handler, bool open = false) {
    routes.push_back({method, path,
                      [&api, handler](Exchange& exchange) { return handler(api, exchange); },
                      open});
  };
  add("POST", "/v1/completions", handle_completions);
  add("POST", "/v1/chat/completions", handle_chat);
  add("POST", "/v1/embeddings", handle_embeddings);
  add("GET", "/v1/models", handle_models);
  add("GET", "/v1/models/*", handle_model);
  add("POST", "/apply-template", handle_apply_template);
  add("POST", "/tokenize", handle_tokenize);
  add("POST", "/detokenize", handle_detokenize);
  add("GET", "/health", handle_health, true);
  add("GET", "/ready", handle_ready);
  add("GET", "/metrics", handle_metrics);
  add("GET", "/api/info", handle_info);
  add("GET", "/api/requests", handle_requests);
  add("GET", "/api/requests/*", handle_request);
  add("GET", "/api/snapshot", handle_snapshot);
  return routes;
}

}  // namespace vitrine
