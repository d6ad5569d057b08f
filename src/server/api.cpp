#include "server/api.h"

#include "engine/engine.h"
#include "formats/model_file.h"
#include "server/http/key_limits.h"

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
  end_ids = served.file().generation().eos_ids;
  fingerprint = fmt::format("vitrine-{}-{}", version, served.info().backend);
  loaded.store(true, std::memory_order_release);
}

HttpService api_service(Api& api) {
  HttpService out;
  for (const Endpoint* endpoint : all_endpoints())
    for (const char* path : endpoint->paths)
      out.routes.push_back(
          {endpoint->method, path,
           [&api, endpoint](Exchange& exchange) {
             bool served = endpoint->while_loading || api.loaded.load(std::memory_order_acquire);
             return served ? endpoint->handle(api, exchange)
                           : send_reply(exchange, {still_loading(), {{"Retry-After", "1"}}});
           },
           endpoint->open});
  out.write_error = [](const HttpError& error) {
    return HttpBody{"application/json", error_body(transport_error(error))};
  };
  return out;
}

asio::awaitable<void> send_reply(Exchange& exchange, Reply reply) {
  if (reply.more && !exchange.hold(reply.held)) reply = too_many_answers_reply();
  if (!reply.more) {
    co_await exchange.reply(reply.status, reply.content_type, std::move(reply.body),
                            std::move(reply.headers));
    co_return;
  }
  co_await exchange.begin(reply.content_type, std::move(reply.headers));
  for (bool more = true; more;) {
    bool sent = co_await exchange.send(std::move(reply.body));
    if (!sent) co_return;
    reply.body.clear();
    auto job = [&reply] { return reply.more(reply.body); };
    more = co_await exchange.on_worker(job);
  }
  bool sent = co_await exchange.send(std::move(reply.body));
  if (sent) co_await exchange.end();
}

Reply too_many_answers_reply() {
  return {transport_error(too_many_answers()), {{"Retry-After", "1"}}};
}

std::optional<Reply> take_tokens(const HttpRequest& request, std::int64_t tokens) {
  if (!request.use) return std::nullopt;
  auto over = request.use->take_tokens(tokens);
  if (!over) return std::nullopt;
  return Reply(transport_error(over->error), std::move(over->headers));
}

Reply refusal(const Api& api, const Error& error) {
  Headers headers;
  if (error.code == ErrorCode::kBusy)
    headers.emplace_back("Retry-After", std::to_string(api.engine->retry_after_seconds()));
  return {engine_error(error), std::move(headers)};
}

}  // namespace vitrine
