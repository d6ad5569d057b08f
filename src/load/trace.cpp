#include "load/trace.h"

#include "base/json.h"

namespace vitrine::load {
namespace {

constexpr std::size_t kMaxError = 300;

int int_at(const json::object& object, std::string_view key) {
  const json::value* v = object.if_contains(key);
  return v != nullptr && v->is_int64() ? static_cast<int>(v->get_int64()) : 0;
}

const json::object* object_at(const json::object& object, std::string_view key) {
  const json::value* v = object.if_contains(key);
  return v != nullptr ? v->if_object() : nullptr;
}

// A frame counts as output when it has text or is not the final one (the text of a token may be
// empty).
bool has_output(const json::object& frame) {
  const json::value* choices = frame.if_contains("choices");
  if (choices == nullptr || !choices->is_array() || choices->get_array().empty()) return false;
  const json::object* choice = choices->get_array()[0].if_object();
  if (choice == nullptr) return false;
  const json::value* text = choice->if_contains("text");
  if (text != nullptr && text->is_string() && !text->get_string().empty()) return true;
  const json::value* reason = choice->if_contains("finish_reason");
  return reason == nullptr || reason->is_null();
}

}  // namespace

const char* outcome_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOk:
      return "ok";
    case Outcome::kRejected:
      return "rejected";
    case Outcome::kHttpError:
      return "http_error";
    case Outcome::kStreamError:
      return "stream_error";
    case Outcome::kBroken:
      return "broken";
    case Outcome::kConnect:
      return "connect";
    case Outcome::kTimeout:
      return "timeout";
  }
  return "?";
}

void CompletionStream::feed(std::string_view bytes, double now) {
  sse_.feed(bytes, [&](std::string_view data) { event(data, now); });
}

void CompletionStream::event(std::string_view data, double now) {
  if (data == "[DONE]") {
    done_ = true;
    return;
  }
  auto frame = parse_json(data, "event");
  const json::object* object = frame.ok() ? frame->if_object() : nullptr;
  if (object == nullptr) {
    malformed_ = true;
    trace_->error = "not a JSON object: " + std::string(data.substr(0, kMaxError));
    return;
  }
  if (const json::value* error = object->if_contains("error"); error && !error->is_null()) {
    failed_ = true;
    trace_->error = std::string(data.substr(0, kMaxError));
    return;
  }
  if (has_output(*object)) text_frame(now);
  if (const json::object* usage = object_at(*object, "usage")) {
    usage_ = true;
    trace_->prompt_tokens = int_at(*usage, "prompt_tokens");
    trace_->output_tokens = int_at(*usage, "completion_tokens");
    if (const json::object* details = object_at(*usage, "prompt_tokens_details"))
      trace_->cached_tokens = int_at(*details, "cached_tokens");
  }
}

void CompletionStream::text_frame(double now) {
  if (trace_->first < 0)
    trace_->first = now;
  else
    trace_->gaps.push_back(static_cast<float>(now - trace_->last));
  trace_->last = now;
  ++frames_;
}

void CompletionStream::finish(double now) {
  trace_->end = now;
  if (!usage_) trace_->output_tokens = frames_;
  if (failed_) {
    trace_->outcome = Outcome::kStreamError;
  } else if (malformed_ || !done_ || sse_.partial() || sse_.overflow()) {
    trace_->outcome = Outcome::kBroken;
    if (trace_->error.empty() && trace_->status == 200)
      trace_->error = done_ ? "a frame without an end" : "the stream ended before [DONE]";
  } else {
    trace_->outcome = Outcome::kOk;
  }
}

}  // namespace vitrine::load
