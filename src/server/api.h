// The server's API: what it serves, and its routes.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "chat/chat_template.h"
#include "engine/engine.h"
#include "sampling/params.h"
#include "server/http.h"
#include "tokenizer/constraint_source.h"
#include "tokenizer/tokenizer.h"

namespace vitrine {

// Streams that answers are being made from, so that all can be ended at shutdown. Thread-safe.
class LiveStreams {
 public:
  std::uint64_t add(std::vector<std::shared_ptr<TokenStream>> streams);
  void remove(std::uint64_t key);
  void cancel_all();
  std::size_t size() const;

 private:
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::map<std::uint64_t, std::vector<std::shared_ptr<TokenStream>>> streams_;
  std::uint64_t next_ = 1;
};

// Constant while requests are served, but for the last part. Outlives the HTTP server.
struct Api {
  Engine* engine = nullptr;              // by attach(), before the first request
  int vocab = 0, context = 0;            // the engine's
  std::string fingerprint;               // "vitrine-0.1.0-cpu"
  const Tokenizer* tokenizer = nullptr;  // null: the model has none
  const ChatTemplate* chat = nullptr;    // with the tokenizer
  std::string model_name, version;
  SamplingParams defaults;    // flags over the model's own; requests are laid over them
  int stream_backlog = 1024;  // tokens that a slow reader may leave unread
  bool isolate_keys = false;  // API keys share no cached pages and see only their own requests
  std::optional<std::chrono::milliseconds> default_timeout;
  Pooling pooling = Pooling::kMean;  // of embeddings, where a request does not say
  std::int64_t started_unix = 0;
  std::function<HttpCounts()> http_counts;  // may be empty

  std::atomic<bool> draining{false};
  std::atomic<std::int64_t> embedding_floats{0};  // of answers in work
  LiveStreams live;
  ConstraintSource constraints;

  // After `version`.
  void attach(Engine& served);
  // Whether `tenant` may see what the account says.
  bool visible(const Account& account, const std::string& tenant) const {
    return !isolate_keys || account.tenant == tenant;
  }
};

std::vector<Route> api_routes(Api& api);

// Answers; `body` is JSON.
asio::awaitable<void> reply_json(Exchange& exchange, std::string body);
asio::awaitable<void> reply_error(Exchange& exchange, const HttpError& error, Headers headers = {});
// The engine did not take the work; where its queue is full, with a Retry-After.
asio::awaitable<void> reply_refused(Api& api, Exchange& exchange, const Error& error);
// While the server drains, and of what that cut short.
HttpError shutting_down();

// Handlers of the routes, by the file that has them.
asio::awaitable<void> handle_completions(Api& api, Exchange& exchange);  // openai_completions.cpp
asio::awaitable<void> handle_chat(Api& api, Exchange& exchange);         // openai_chat.cpp
asio::awaitable<void> handle_embeddings(Api& api, Exchange& exchange);   // openai_embeddings.cpp
asio::awaitable<void> handle_apply_template(Api& api, Exchange& exchange);  // api_template.cpp
asio::awaitable<void> handle_metrics(Api& api, Exchange& exchange);         // metrics_text.cpp
// api_misc.cpp
asio::awaitable<void> handle_models(Api& api, Exchange& exchange);
asio::awaitable<void> handle_model(Api& api, Exchange& exchange);
asio::awaitable<void> handle_tokenize(Api& api, Exchange& exchange);
asio::awaitable<void> handle_detokenize(Api& api, Exchange& exchange);
asio::awaitable<void> handle_health(Api& api, Exchange& exchange);
asio::awaitable<void> handle_ready(Api& api, Exchange& exchange);
// api_state.cpp
asio::awaitable<void> handle_info(Api& api, Exchange& exchange);
asio::awaitable<void> handle_requests(Api& api, Exchange& exchange);
asio::awaitable<void> handle_request(Api& api, Exchange& exchange);
asio::awaitable<void> handle_snapshot(Api& api, Exchange& exchange);

}  // namespace vitrine
