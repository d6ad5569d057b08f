// POST /api/requests/ID/scan: which tokens of a recorded answer would be others with other parameters.
// Every row is judged on the recorded tokens before it, also after the first difference.
#include <algorithm>

#include "engine/engine.h"
#include "sampling/explain.h"
#include "server/replay.h"
#include "server/request/call.h"
#include "server/request/kept_text.h"

namespace vitrine {
namespace {

constexpr int kMostPositions = 1024;  // of a call

class Scan {
 public:
  Scan(Api& api, Exchange& exchange) : api_(api), exchange_(exchange), replay_(api, exchange) {}
  asio::awaitable<void> run();

 private:
  std::optional<ApiError> read();
  std::vector<int> some() const;
  std::optional<ApiError> judge(const std::vector<int>& positions);
  Reply answer();

  Api& api_;
  Exchange& exchange_;
  Replay replay_;
  Text text_;
  SamplingParams sampling_;
  int at_ = 0, end_ = 0;            // positions that are left
  std::optional<DrawState> state_;  // at at_
  std::optional<Scratch> scratch_;
  std::optional<int> first_difference_;
  json::array tokens_;
};

std::optional<ApiError> Scan::read() {
  const HttpRequest& http = exchange_.request();
  if (auto error = find_text(api_, http, text_)) return error;
  json::value body;
  if (auto error = parse_body(http.body, body)) return error;
  JsonFields fields(body.get_object());
  const auto first = static_cast<int>(text_.prompt->size());
  at_ = static_cast<int>(fields.integer("from", first, text_.length()).value_or(first));
  sampling_ = read_overrides(api_, fields, text_.call->request.sampling);
  // What ended the text was drawn too.
  const int all = text_.length() + (text_.told(text_.length()) ? 1 : 0);
  end_ = std::min(all, at_ + kMostPositions);
  if (auto error = fields.close()) return error;
  state_ = draw_state_at(api_, text_, sampling_, at_);
  if (!state_)
    return ApiError{500, "server_error", "its tokens do not follow its constraint", "", ""};
  scratch_.emplace(static_cast<std::size_t>(api_.vocab));
  return std::nullopt;
}

std::vector<int> Scan::some() const {
  std::vector<int> out;
  const int end = std::min(end_, at_ + static_cast<int>(Replay::kMostRows));
  for (int position = at_; position < end; ++position) out.push_back(position);
  return out;
}

std::optional<ApiError> Scan::judge(const std::vector<int>& positions) {
  for (int position : positions) {
    const std::int32_t was = *text_.told(position);
    const DrawState::Next next = state_->next(position - 1);
    std::int32_t now = -1;
    double p_was = 0, p_now = 0;
    if (!next.complete && next.status == LogitsStatus::kOk) {
      const Explanation told = state_->chain->explain(*replay_.row(position), state_->history,
                                                      next.spec, 0, *scratch_, true);
      if (told.status != LogitsStatus::kOk)
        return ApiError{500, "server_error", logits_status_text(told.status), "", "replay_failed"};
      now = told.token;
      p_was = told.stages.back().p(told.weight(was));
      p_now = told.stages.back().p(told.weight(now));
    }
    if (now != was && !first_difference_) first_difference_ = position;
    tokens_.push_back(
        json::array{position, was, now < 0 ? json::value() : json::value(now), p_was, p_now});
    if (position < text_.length()) state_->follow(was, text_.p_at(position));
    at_ = position + 1;
  }
  return std::nullopt;
}

Reply Scan::answer() {
  const int all = text_.length() + (text_.told(text_.length()) ? 1 : 0);
  return to_json(json::object{
      {"first_difference", first_difference_ ? json::value(*first_difference_) : json::value()},
      {"exact", replays_are_exact(api_)},
      {"computed_rows", replay_.computed_rows()},
      {"next", end_ < all ? json::value(end_) : json::value()},
      {"tokens", std::move(tokens_)}});
}

asio::awaitable<void> Scan::run() {
  auto first = [this] { return read(); };
  std::optional<ApiError> error = co_await exchange_.on_worker(first);
  while (!error && at_ < end_) {
    std::vector<int> positions = some();
    bool there = co_await replay_.fetch(text_, positions);
    if (!there) {
      if (replay_.refused()) co_await send_reply(exchange_, std::move(*replay_.refused()));
      co_return;
    }
    auto job = [&] { return judge(positions); };
    error = co_await exchange_.on_worker(job);
  }
  auto last = [&] { return error ? Reply(*error) : answer(); };
  Reply reply = co_await exchange_.on_worker(last);
  co_await send_reply(exchange_, std::move(reply));
}

asio::awaitable<void> handle(Api& api, Exchange& exchange) {
  Scan scan(api, exchange);
  co_await scan.run();
}

}  // namespace

extern const Endpoint kEndpoint_request_scan;
const Endpoint kEndpoint_request_scan{"POST", {"/api/requests/*/scan"}, handle};

}  // namespace vitrine
