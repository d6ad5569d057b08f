#include "engine/request.h"

#include <algorithm>

namespace vitrine {

std::optional<TokenEvent> TokenStream::next() {
  std::unique_lock lock(mutex_);
  ready_.wait(lock, [&] { return read_ < events_.size() || finish_.has_value(); });
  if (read_ == events_.size()) return std::nullopt;
  backlog_.fetch_sub(1, std::memory_order_relaxed);
  TokenEvent event = events_[read_++];
  if (read_ == events_.size()) events_.clear(), top_events_.clear(), read_ = 0;
  return event;
}

bool TokenStream::read(std::vector<TokenEvent>& events, std::vector<TokenLogprob>& top) {
  std::lock_guard lock(mutex_);
  // Both or, for lack of memory, neither.
  events.reserve(events.size() + events_.size());
  top.reserve(top.size() + top_events_.size());
  events.insert(events.end(), events_.begin() + static_cast<std::ptrdiff_t>(read_), events_.end());
  top.insert(top.end(), top_events_.begin() + static_cast<std::ptrdiff_t>(read_) * top_,
             top_events_.end());
  events_.clear(), top_events_.clear();
  read_ = 0;
  backlog_.store(0, std::memory_order_relaxed);
  return finish_.has_value();
}

const Finish& TokenStream::wait() {
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [&] { return finish_.has_value(); });
  return *finish_;
}

const std::map<int, std::vector<float>>& TokenStream::logits() {
  wait();
  return logits_;
}

void TokenStream::allow(int more) {
  constexpr std::int64_t kMost = 1 << 30;
  int had = allowed();
  std::int64_t now = 0;
  do {
    const int from = had < 0 ? drawn() : had;
    now = more == 0 ? drawn() : std::min(std::int64_t{from} + more, kMost);
  } while (!allowed_.compare_exchange_weak(had, static_cast<int>(now), std::memory_order_relaxed));
}

bool TokenStream::finished() const {
  std::lock_guard lock(mutex_);
  return finish_.has_value();
}

// As much as a reader that keeps up will ever need; one that does not makes it grow.
void TokenStream::reserve(const Request& request, int prompt, int max_output) {
  constexpr int kMost = 1024;
  on_ready_ = request.on_ready;
  top_ = request.top_logprobs;
  if (request.allow) allowed_ = *request.allow;
  auto events = static_cast<std::size_t>(std::min(max_output, kMost));
  events_.reserve(events);
  top_events_.reserve(events * top_);
  if (!request.prompt_logprobs) return;
  prompt_logprobs_.logprobs.resize(prompt);
  prompt_logprobs_.top.resize(prompt);
}

void TokenStream::push(TokenEvent event, const TokenLogprob* top) {
  {
    std::lock_guard lock(mutex_);
    // Entries beyond the last event are not read.
    if (top_ > 0) top_events_.insert(top_events_.end(), top, top + top_);
    events_.push_back(event);
    backlog_.fetch_add(1, std::memory_order_relaxed);
    drawn_.fetch_add(1, std::memory_order_relaxed);
  }
  ready_.notify_one();
  if (on_ready_) on_ready_();
}

void TokenStream::add_logits(int position, std::vector<float> row) {
  std::lock_guard lock(mutex_);
  logits_[position] = std::move(row);
}

void TokenStream::close(Finish finish) noexcept {
  {
    std::lock_guard lock(mutex_);
    finish_ = std::move(finish);
  }
  ready_.notify_all();
  finished_.notify_all();
  if (on_ready_) on_ready_();
}

}  // namespace vitrine
