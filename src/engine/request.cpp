#include "engine/request.h"

namespace vitrine {

const char* finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kError:
      return "error";
  }
  return "error";
}

std::optional<TokenEvent> TokenStream::next() {
  std::unique_lock lock(mutex_);
  ready_.wait(lock, [&] { return read_ < events_.size() || finish_.has_value(); });
  if (read_ < events_.size()) return events_[read_++];
  return std::nullopt;
}

const Finish& TokenStream::wait() {
  std::unique_lock lock(mutex_);
  ready_.wait(lock, [&] { return finish_.has_value(); });
  return *finish_;
}

void TokenStream::cancel() {
  std::lock_guard lock(mutex_);
  cancelled_ = true;
}

bool TokenStream::cancelled() const {
  std::lock_guard lock(mutex_);
  return cancelled_;
}

const std::map<int, std::vector<float>>& TokenStream::logits() {
  wait();
  return logits_;
}

void TokenStream::push(TokenEvent event) {
  {
    std::lock_guard lock(mutex_);
    events_.push_back(event);
  }
  ready_.notify_one();
}

void TokenStream::add_logits(int position, std::vector<float> row) {
  std::lock_guard lock(mutex_);
  logits_[position] = std::move(row);
}

void TokenStream::close(Finish finish) {
  {
    std::lock_guard lock(mutex_);
    finish_ = std::move(finish);
  }
  ready_.notify_all();
}

}  // namespace vitrine
