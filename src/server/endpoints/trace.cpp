// GET /api/trace?from=SEQ: what the engine does, as it happens, as server-sent events (docs/trace.md). For
// operators: it tells about everybody.
//
// A reader that is too far behind is not waited for: it loses whole events, is told how many (`gap`), and goes
// on after a snapshot.
#include "base/process_clock.h"
#include "server/answer/moment_json.h"
#include "server/answer/pieces.h"
#include "server/api.h"
#include "server/request/query.h"

namespace vitrine {
namespace {

constexpr std::chrono::seconds kPing{2};

class Watch {
 public:
  Watch(Api& api, Exchange& exchange, std::unique_ptr<TraceHub::Stream> stream)
      : api_(api), exchange_(exchange), stream_(std::move(stream)) {}
  asio::awaitable<void> run(std::optional<std::uint64_t> from);

 private:
  void hello();
  void begin(std::optional<std::uint64_t> from);
  void snapshot();
  void gap(std::uint64_t from);
  void more();
  // False: the client is gone, or there is no room for what it has to be sent.
  asio::awaitable<bool> send();

  Api& api_;
  Exchange& exchange_;
  std::unique_ptr<TraceHub::Stream> stream_;
  std::string out_;  // not sent yet
  std::uint64_t dropped_ = 0;
  std::chrono::steady_clock::time_point pinged_ = std::chrono::steady_clock::now();
};

void Watch::hello() {
  append_event_frame(out_, "hello", 0,
                     to_json(hello_json(*api_.engine, api_.model_name, exchange_.request())));
}

void Watch::snapshot() {
  const Engine::Moment moment = api_.engine->moment();
  stream_->begin(moment);
  append_event_frame(out_, "snapshot", moment.seq,
                     to_json(moment_json(*api_.engine, moment, exchange_.request())));
}

// Events after `from` are not told.
void Watch::gap(std::uint64_t from) {
  std::string before = std::exchange(out_, {});
  snapshot();
  std::string after = std::exchange(out_, std::move(before));
  dropped_ += stream_->told() - std::min(from, stream_->told());
  append_event_frame(out_, "gap", 0,
                     to_json(json::object{{"from", from}, {"to", stream_->told()}}));
  out_ += after;
}

void Watch::begin(std::optional<std::uint64_t> from) {
  hello();
  if (!from)
    snapshot();
  else if (!stream_->resume(*from))
    gap(*from);
}

void Watch::more() {
  const auto now = std::chrono::steady_clock::now();
  if (!stream_->news(out_, kPieceBytes)) gap(stream_->told());
  if (now - pinged_ < kPing) return;
  pinged_ = now;
  append_event_frame(out_, "ping", 0,
                     to_json(json::object{{"now_ns", process_ns()}, {"dropped", dropped_}}));
}

asio::awaitable<bool> Watch::send() {
  if (!exchange_.hold(static_cast<std::int64_t>(out_.size()))) co_return false;
  for (std::size_t at = 0; at < out_.size(); at += kPieceBytes) {
    std::string piece = out_.substr(at, kPieceBytes);
    bool sent = co_await exchange_.send(std::move(piece));
    if (!sent) co_return false;
  }
  out_ = {};
  exchange_.hold(0);
  co_return true;
}

asio::awaitable<void> Watch::run(std::optional<std::uint64_t> from) {
  co_await exchange_.begin_events();
  auto first = [&] { begin(from); };
  co_await exchange_.on_worker(first);
  while (true) {
    const bool all = out_.size() < kPieceBytes;
    bool here = co_await send();
    if (here && all) here = co_await exchange_.wait_for(api_.trace.interval);
    if (!here) co_return;
    if (api_.draining) break;
    auto next = [&] { more(); };
    co_await exchange_.on_worker(next);
  }
  co_await exchange_.end();
}

asio::awaitable<void> trace(Api& api, Exchange& exchange) {
  const HttpRequest& http = exchange.request();
  std::uint64_t number = 0;
  std::optional<std::uint64_t> from;
  std::optional<Reply> refused;
  if (!http.rights.is_operator)
    refused = operator_only(http.path);
  else if (auto error = read_query(http.query, {whole_number("from", number)}))
    refused = *error;
  else if (!api.engine->log().on())
    refused = no_log();
  std::unique_ptr<TraceHub::Stream> stream;
  if (!refused) {
    auto open = [&] { stream = api.trace.open(*api.engine); };
    co_await exchange.on_worker(open);
  }
  if (!refused && !stream) refused = Reply(too_many_streams(), {{"Retry-After", "15"}});
  if (refused) {
    co_await send_reply(exchange, std::move(*refused));
    co_return;
  }
  if (!http.query.empty()) from = number;
  Watch watch(api, exchange, std::move(stream));
  co_await watch.run(from);
}

}  // namespace

extern const Endpoint kEndpoint_trace;
const Endpoint kEndpoint_trace{"GET", {"/api/trace"}, trace};

}  // namespace vitrine
