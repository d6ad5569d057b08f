#include "server/replay.h"

#include <algorithm>

#include "engine/engine.h"
#include "formats/storage.h"
#include "server/http/key_limits.h"
#include "server/request/call.h"
#include "server/request/prompt_fields.h"

namespace vitrine {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kTimeout = 120s;

}  // namespace

Replay::~Replay() {
  // What still runs has not said what it costs.
  if (const auto& use = exchange_.request().use) use->settle_tokens(stream_ ? taken_ : charged_);
  if (stream_) stream_->cancel();
  close();
}

void Replay::close() {
  if (live_key_ != 0) api_.live.remove(std::exchange(live_key_, 0));
  stream_.reset();
}

// On a worker: what is there, and a request for the rest.
std::optional<Reply> Replay::start(const Text& text, std::span<const int> positions,
                                   std::function<void()> waker) {
  if (api_.draining) return Reply(shutting_down());
  rows_.clear(), missing_.clear();
  for (int position : positions)
    if (LogitRow row = api_.rows.find(text.id, position - 1))
      rows_[position] = std::move(row);
    else
      missing_.push_back(position);
  if (missing_.empty()) return std::nullopt;
  const auto bytes = static_cast<std::int64_t>(positions.size() * sizeof(float)) * api_.vocab;
  if (!exchange_.hold(bytes)) return too_many_answers_reply();
  const HttpRequest& http = exchange_.request();
  Request r;
  for (int i = 0; i < missing_.back(); ++i) r.prompt.push_back(text.token(i));
  for (int position : missing_) r.logit_positions.push_back(position - 1);
  r.max_tokens = 0;
  r.priority = std::min(text.call->request.priority + kLevelsBelow, kMaxPriority);
  read_origin(http, r);
  r.cache_salt = text.call->request.cache_salt;  // where its pages are
  r.timeout = std::min(kTimeout, api_.default_timeout.value_or(kTimeout));
  r.on_ready = std::move(waker);
  r.parent = text.id;
  taken_ = charged_ + static_cast<std::int64_t>(r.prompt.size());
  if (auto over = take_tokens(http, taken_)) return over;
  auto stream = api_.engine->submit(std::move(r));
  if (!stream.ok()) return refusal(api_, stream.error());
  stream_ = *stream;
  live_key_ = api_.live.add({stream_});
  return std::nullopt;
}

// When the sequence has ended.
std::optional<Reply> Replay::collect(const Text& text) {
  const Finish& finish = stream_->wait();
  const Usage& usage = finish.account.usage;
  charged_ += usage.prompt_tokens - usage.cached_tokens;
  computed_ += usage.prompt_tokens - usage.cached_tokens;
  switch (finish.reason) {
    case FinishReason::kError:
      if (finish.error == kOutOfMemory) return Reply(out_of_memory(), {{"Retry-After", "1"}});
      return Reply(ApiError{500, "server_error", finish.error, "", "replay_failed"});
    case FinishReason::kTimeout:
      return Reply(ApiError{504, "timeout_error",
                            "the engine is busy with other requests: the replay found no time",
                            "timeout", "timeout"});
    case FinishReason::kCancelled:
      return Reply(shutting_down());
    default:
      break;
  }
  const auto& logits = stream_->logits();
  const bool kept = api_.texts.has(text.id);  // not of one that was forgotten meanwhile
  for (int position : missing_) {
    auto row = std::make_shared<const std::vector<float>>(logits.at(position - 1));
    if (kept) api_.rows.add(text.id, position - 1, row);
    rows_[position] = std::move(row);
  }
  return std::nullopt;
}

asio::awaitable<bool> Replay::fetch(const Text& text, std::vector<int> positions) {
  auto first = [&, waker = exchange_.waker()] { return start(text, positions, waker); };
  refused_ = co_await exchange_.on_worker(first);
  if (refused_) co_return false;
  std::vector<TokenEvent> events;
  std::vector<TokenLogprob> top;
  while (stream_ && !stream_->read(events, top)) {
    bool here = co_await exchange_.wait();
    if (!here) co_return false;
  }
  if (!stream_) co_return true;
  auto last = [&] { return collect(text); };
  refused_ = co_await exchange_.on_worker(last);
  close();
  co_return !refused_;
}

std::optional<DrawState> draw_state_at(const Api& api, const Text& text,
                                       const SamplingParams& sampling, int position) {
  Request r = text.call->request;
  r.sampling = sampling;
  r.logprobs = true;
  const int prompt = static_cast<int>(text.prompt->size());
  const int most = std::min(r.max_tokens.value_or(api.context), api.context - prompt);
  std::optional<DrawState> out(std::in_place, r, *text.prompt, most, api.vocab,
                               api.engine->file().generation().eos_ids, text.choice,
                               sampling.seed().value_or(text.seed));
  for (int i = prompt; i < position; ++i)
    if (!out->follow(text.token(i), text.p_at(i))) return std::nullopt;
  return out;
}

bool replays_are_exact(const Api& api) {
  return api.engine->info().backend != "cuda" || api.engine->options().deterministic;
}

}  // namespace vitrine
