#include "server/generation.h"

#include <algorithm>

#include "server/account_json.h"
#include "server/choice_reader.h"
#include "server/json_fields.h"

namespace vitrine {
namespace {

using namespace std::chrono_literals;

std::int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

class Answer {
 public:
  Answer(Api& api, Exchange& exchange, const Endpoint& endpoint, Call call)
      : api_(api),
        exchange_(exchange),
        endpoint_(endpoint),
        call_(std::move(call)),
        created_(unix_seconds()) {}
  // Whatever still runs has nobody to read it.
  ~Answer() {
    for (const auto& choice : choices_) choice->stream().cancel();
    if (live_key_ != 0) api_.live.remove(live_key_);
  }
  Answer(const Answer&) = delete;

  asio::awaitable<void> run();

 private:
  std::optional<Error> submit();
  asio::awaitable<void> reply_whole();
  asio::awaitable<void> reply_stream();
  asio::awaitable<bool> send_news();
  asio::awaitable<void> refuse(HttpError error);

  void pump(std::size_t most = SIZE_MAX) {
    for (auto& choice : choices_) choice->pump(most);
  }
  bool all_closed() const {
    return std::all_of(choices_.begin(), choices_.end(), [](auto& c) { return c->closed(); });
  }
  std::optional<HttpError> failure() const;
  // Whether the status can be 200: some choice has a token, or an end other than its deadline.
  bool has_begun() const {
    return std::any_of(choices_.begin(), choices_.end(), [](auto& c) {
      return c->tokens() > 0 || (c->closed() && c->finish().reason != FinishReason::kTimeout);
    });
  }
  HttpError too_late() const;
  std::string head(const char* object) const;
  json::object usage() const;
  json::object timings() const;
  std::string whole();
  std::string last_frames() const;

  Api& api_;
  Exchange& exchange_;
  const Endpoint& endpoint_;
  Call call_;
  std::int64_t created_;
  std::string chunk_head_;  // the beginning of every frame
  std::vector<std::unique_ptr<ChoiceReader>> choices_;
  std::uint64_t live_key_ = 0;
  bool headers_sent_ = false;
};

// Everything or nothing: when a prompt finds no room, the ones before it are taken back.
std::optional<Error> Answer::submit() {
  std::vector<std::shared_ptr<TokenStream>> all;
  for (const auto& prompt : call_.prompts) {
    Request request = call_.request;
    request.prompt = prompt;
    auto streams = api_.engine->submit_choices(std::move(request));
    if (!streams.ok()) {
      for (auto& stream : all) stream->cancel();
      return streams.error();
    }
    all.insert(all.end(), streams->begin(), streams->end());
  }
  for (std::size_t i = 0; i < all.size(); ++i)
    choices_.push_back(std::make_unique<ChoiceReader>(call_, api_.tokenizer, static_cast<int>(i),
                                                      all[i], all[i - i % call_.request.choices]));
  live_key_ = api_.live.add(std::move(all));
  if (call_.echoes.empty()) call_.prompts.clear();
  return std::nullopt;
}

asio::awaitable<void> Answer::run() {
  if (api_.draining) {
    HttpError error = shutting_down();
    co_await refuse(std::move(error));
    co_return;
  }
  call_.request.on_ready = exchange_.waker();
  if (call_.stream) chunk_head_ = "data: " + head(endpoint_.chunk_object) + ",\"choices\":[";
  auto job = [this] { return submit(); };
  std::optional<Error> refused = co_await exchange_.on_worker(job);
  if (refused) {
    co_await reply_refused(api_, exchange_, *refused);
  } else if (call_.stream) {
    co_await reply_stream();
  } else {
    co_await reply_whole();
  }
}

// As a status while that is possible, as a frame after the headers.
asio::awaitable<void> Answer::refuse(HttpError error) {
  if (!headers_sent_) {
    co_await reply_error(exchange_, error);
    co_return;
  }
  std::string frame = "data: " + error_body(error) + "\n\n";
  bool sent = co_await exchange_.send(std::move(frame));
  if (sent) co_await exchange_.end_events();
}

std::optional<HttpError> Answer::failure() const {
  for (const auto& choice : choices_) {
    if (!choice->failed()) continue;
    if (choice->finish().reason == FinishReason::kError)
      return HttpError{500, "server_error", choice->finish().error, "", "generation_failed"};
    return shutting_down();
  }
  return std::nullopt;
}

HttpError Answer::too_late() const {
  return {504, "timeout_error",
          fmt::format("timeout: {} s passed before the first token",
                      static_cast<double>(call_.request.timeout.value_or(0ms).count()) / 1000),
          "timeout", "timeout"};
}

asio::awaitable<void> Answer::reply_whole() {
  while (true) {
    pump();
    std::optional<HttpError> error = failure();
    if (!error && all_closed() && !has_begun()) error = too_late();
    if (error) {
      co_await refuse(std::move(*error));
      co_return;
    }
    if (all_closed()) break;
    bool here = co_await exchange_.wait();
    if (!here) co_return;
  }
  auto job = [this] { return whole(); };
  std::string body = co_await exchange_.on_worker(job);
  co_await reply_json(exchange_, std::move(body));
}

asio::awaitable<void> Answer::reply_stream() {
  while (true) {
    pump(1);
    bool ok = co_await send_news();
    if (!ok) co_return;
    std::optional<HttpError> error = failure();
    if (!error && all_closed() && !has_begun()) error = too_late();
    if (error) {
      co_await refuse(std::move(*error));
      co_return;
    }
    if (all_closed()) break;
    bool here = co_await exchange_.wait();
    if (!here) co_return;
  }
  auto job = [this] { return last_frames(); };
  std::string frames = co_await exchange_.on_worker(job);
  bool sent = co_await exchange_.send(std::move(frames));
  if (sent) co_await exchange_.end_events();
}

// A frame for each token that shows something, all in one piece; the headers with the first. False:
// the client is gone.
asio::awaitable<bool> Answer::send_news() {
  bool failed_at_once = !headers_sent_ && failure();
  if (failed_at_once || !has_begun()) co_return true;
  if (!headers_sent_) {
    headers_sent_ = true;
    co_await exchange_.begin_events();
  }
  std::string frames;
  for (auto& choice : choices_) {
    while (true) {
      if (choice->has_news()) {
        frames += chunk_head_;
        frames += endpoint_.choice(call_, api_.tokenizer, choice->take(), true);
        frames += call_.include_usage ? "],\"usage\":null}\n\n" : "]}\n\n";
      }
      if (!choice->behind()) break;
      choice->pump(1);
    }
  }
  if (frames.empty()) co_return true;
  bool sent = co_await exchange_.send(std::move(frames));
  co_return sent;
}

std::string Answer::head(const char* object) const {
  std::string out = "{\"id\":";
  append_json(out, endpoint_.id_prefix + exchange_.request().id);
  out += fmt::format(",\"object\":\"{}\",\"created\":{},\"model\":", object, created_);
  append_json(out, api_.model_name);
  out += ",\"system_fingerprint\":";
  append_json(out, api_.fingerprint);
  return out;
}

json::object Answer::usage() const {
  std::int64_t prompt = 0, cached = 0, completion = 0, reasoning = 0;
  for (const auto& choice : choices_) {
    reasoning += choice->reasoning_tokens();
    completion += choice->completion_tokens();
    if (choice->index() % call_.request.choices != 0) continue;  // the prompt counts once
    prompt += choice->finish().account.usage.prompt_tokens;
    cached += choice->finish().account.usage.cached_tokens;
  }
  return {{"prompt_tokens", prompt},
          {"completion_tokens", completion},
          {"total_tokens", prompt + completion},
          {"prompt_tokens_details", {{"cached_tokens", cached}}},
          {"completion_tokens_details", {{"reasoning_tokens", reasoning}}}};
}

json::object Answer::timings() const {
  json::array list;
  for (const auto& choice : choices_) {
    json::object one = account_json(choice->finish().account);
    one["index"] = choice->index();
    one["completion_tokens"] = choice->completion_tokens();
    one["seed"] = choice->finish().seed;
    one["inter_token_ms"] = token_latency_json(choice->times());
    list.emplace_back(std::move(one));
  }
  return {{"choices", std::move(list)}};
}

std::string Answer::whole() {
  std::string out = head(endpoint_.object) + ",\"choices\":[";
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    if (i > 0) out += ',';
    out += endpoint_.choice(call_, api_.tokenizer, choices_[i]->take(), false);
  }
  out += "],\"usage\":" + to_json(usage());
  if (call_.timings) out += ",\"vitrine\":" + to_json(timings());
  return out + "}";
}

std::string Answer::last_frames() const {
  std::string out;
  if (call_.include_usage || call_.timings) {
    out += chunk_head_ + "]";
    if (call_.include_usage) out += ",\"usage\":" + to_json(usage());
    if (call_.timings) out += ",\"vitrine\":" + to_json(timings());
    out += "}\n\n";
  }
  return out + "data: [DONE]\n\n";
}

}  // namespace

asio::awaitable<void> answer_call(Api& api, Exchange& exchange, const Endpoint& endpoint,
                                  Call call) {
  Answer answer(api, exchange, endpoint, std::move(call));
  co_await answer.run();
}

}  // namespace vitrine
