#include "server/api.h"

#include "engine/engine.h"

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
  vocab = served.info().vocab;
  context = served.memory().context;
  fingerprint = fmt::format("vitrine-{}-{}", version, served.info().backend);
}

HttpService api_service(Api& api) {
  HttpService out;
  for (const Endpoint* endpoint : all_endpoints())
    for (const char* path : endpoint->paths)
      out.routes.push_back(
          {endpoint->method, path,
           [&api, handle = endpoint->handle](Exchange& exchange) { return handle(api, exchange); },
           endpoint->open});
  out.write_error = [](const HttpError& error) {
    return HttpBody{"application/json", error_body(transport_error(error))};
  };
  return out;
}

asio::awaitable<void> send_reply(Exchange& exchange, Reply reply) {
  co_await exchange.reply(reply.status, reply.content_type, std::move(reply.body),
                          std::move(reply.headers));
}

Reply refusal(const Api& api, const Error& error) {
  Headers headers;
  if (error.code == ErrorCode::kBusy)
    headers.emplace_back("Retry-After", std::to_string(api.engine->retry_after_seconds()));
  return {engine_error(error), std::move(headers)};
}

}  // namespace vitrine
