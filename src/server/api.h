// The server's API: what it serves, and its endpoints. An endpoint is one file of endpoints/.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/swappable.h"
#include "engine/account.h"
#include "engine/pooling.h"
#include "glass/assets.h"
#include "sampling/params.h"
#include "sampling/token_texts.h"
#include "server/error.h"
#include "server/http/http.h"
#include "server/logit_rows.h"
#include "server/refused.h"
#include "server/texts.h"
#include "server/trace_hub.h"
#include "tokenizer/constraint_source.h"

namespace vitrine {

class ChatTemplate;
class Engine;
class Tokenizer;
class TokenStream;

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

// Constant while requests are served, but for the last part. Outlives the HTTP server. Until the
// engine is there only endpoints that say so are served (Endpoint::while_loading).
struct Api {
  Engine* engine = nullptr;              // by attach()
  int vocab = 0, context = 0;            // the engine's
  std::vector<std::int32_t> end_ids;     // tokens that end a text; the model's
  std::string fingerprint;               // "vitrine-0.1.0-cpu"
  const Tokenizer* tokenizer = nullptr;  // null: the model has none
  const ChatTemplate* chat = nullptr;    // with the tokenizer
  std::string model_name, version;
  SamplingParams defaults;  // flags over the model's own; requests are laid over them
  static constexpr int kDefaultBacklog = 1024;
  int stream_backlog = kDefaultBacklog;  // tokens that a slow reader may leave unread
  bool lab = true;                       // experiments are allowed
  bool share_cache = false;              // API keys share cached pages and compiled constraints
  std::optional<std::chrono::milliseconds> default_timeout;
  Pooling pooling = Pooling::kMean;  // of embeddings, where a request does not say
  std::int64_t started_unix = 0;
  std::function<HttpCounts()> http_counts;    // may be empty
  std::span<const Asset> page = ui_assets();  // empty: switched off; outlives the HTTP server

  std::atomic<bool> loaded{false};  // by attach(), after all that it sets
  std::atomic<std::int64_t> load_bytes{0}, load_bytes_total{0};
  // Names of files that were overwritten while they are served; null: none.
  Swappable<const std::vector<std::string>> changed_files;
  std::atomic<bool> draining{false};
  LiveStreams live;
  Texts texts;     // of requests that asked to be kept
  LogitRows rows;  // of these, computed again
  Refused refused;
  ConstraintSource constraints;
  TokenTextsSource texts_of_tokens;
  TraceHub trace;  // the engine's events

  // After `version`. Requests may already come in.
  void attach(Engine& served);
  // Whose cached pages and constraints a tenant's requests may find: what is cached under another
  // scope cannot be told from what is not cached.
  std::string scope(const std::string& tenant) const { return share_cache ? "" : tenant; }
};

// Whether a request may see what the account says.
inline bool visible(const Account& account, const HttpRequest& http) {
  return http.rights.is_operator || account.tenant == http.tenant;
}

// A path of the API, or several that one handler serves.
struct Endpoint {
  const char* method;              // "GET", "POST"
  std::vector<const char*> paths;  // each as Route::path
  // A coroutine on the connection's strand; what takes over a millisecond goes to a worker.
  asio::awaitable<void> (*handle)(Api& api, Exchange& exchange);
  bool open = false;  // answers without an API key
  // Answers before the engine is there, and does without it. The others get 503 until then.
  bool while_loading = false;
};
std::span<const Endpoint* const> all_endpoints();

// All endpoints, and errors in OpenAI's shape.
HttpService api_service(Api& api);

// An answer: JSON, unless it says otherwise.
struct Reply {
  Reply(std::string json) : body(std::move(json)) {}
  Reply(const ApiError& error, Headers more = {})
      : status(error.status),
        body(error_body(error)),
        headers(std::move(more)),
        error(error.message) {}
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  Headers headers;
  std::string error;  // in words
  // Of a long body, what writes the rest (answer/pieces.h): appends some and says whether there is
  // more; called on workers. `held`: bytes that it keeps.
  std::function<bool(std::string& out)> more;
  std::int64_t held = 0;
};
asio::awaitable<void> send_reply(Exchange& exchange, Reply reply);
// There is no room for another answer.
Reply too_many_answers_reply();
// Tokens that the request is expected to cost, before it is submitted. A reply: over its key's
// limit.
std::optional<Reply> take_tokens(const HttpRequest& request, std::int64_t tokens);
// The engine did not take the work; where its queue is full, with a Retry-After.
Reply refusal(const Api& api, const Error& error);

// Handlers of endpoints whose answer is what one function makes of the request: on a worker, or
// at once where that takes no time.
using MakeReply = Reply (*)(const Api& api, const HttpRequest& request);

template <MakeReply kMake>
asio::awaitable<void> reply_from_worker(Api& api, Exchange& exchange) {
  auto job = [&] { return kMake(api, exchange.request()); };
  Reply reply = co_await exchange.on_worker(job);
  co_await send_reply(exchange, std::move(reply));
}

// On a worker too, and asks for room (Exchange::hold) before it makes what is large.
using MakeReplyWithRoom = Reply (*)(const Api& api, Exchange& exchange);

template <MakeReplyWithRoom kMake>
asio::awaitable<void> reply_with_room(Api& api, Exchange& exchange) {
  auto job = [&] { return kMake(api, exchange); };
  Reply reply = co_await exchange.on_worker(job);
  co_await send_reply(exchange, std::move(reply));
}

template <MakeReply kMake>
asio::awaitable<void> reply_at_once(Api& api, Exchange& exchange) {
  return send_reply(exchange, kMake(api, exchange.request()));
}

}  // namespace vitrine
