#include "server/answer/generation.h"

#include <algorithm>
#include <numeric>

#include "engine/engine.h"
#include "sampling/rng.h"
#include "server/answer/account_json.h"
#include "server/answer/choice_reader.h"
#include "server/answer/pieces.h"
#include "server/http/key_limits.h"
#include "server/request/json_fields.h"

namespace vitrine {
namespace {

using namespace std::chrono_literals;

std::int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// Cancels streams that did not get a reader.
struct Canceller {
  const std::vector<std::shared_ptr<TokenStream>>& streams;
  bool armed = true;
  ~Canceller() {
    for (const auto& stream : streams)
      if (armed) stream->cancel();
  }
};

class Answer {
 public:
  // `read`: as ReadCall.
  using Read = std::function<ParsedCall(const TextEndpoint*& endpoint)>;
  Answer(Api& api, Exchange& exchange, Read read)
      : api_(api), exchange_(exchange), read_(std::move(read)) {}
  // What still runs has no reader any more.
  ~Answer() {
    cancel();
    settle();
    if (live_key_ != 0) api_.live.remove(live_key_);
  }
  Answer(const Answer&) = delete;

  asio::awaitable<void> run();

 private:
  // On a worker: from the body to sequences in the engine's queue. A reply: it was refused.
  std::optional<Reply> start(std::function<void()> waker);
  std::optional<Error> submit();
  void keep_refused(const std::string& why);
  // Keeps the text of the choices that were added last, `n` of a prompt.
  void record(std::shared_ptr<const std::vector<std::int32_t>> prompt, std::uint64_t seed, int n);
  asio::awaitable<void> answer();
  asio::awaitable<bool> send_news();
  asio::awaitable<void> fail(ApiError error);

  void cancel() {
    for (const auto& choice : choices_) choice->stream().cancel();
  }
  // Tells the key's limits what the answer has cost.
  void settle() {
    const auto& use = exchange_.request().use;
    if (!use) return;
    std::int64_t tokens = choices_.empty() ? 0 : prompt_tokens_;
    for (const auto& choice : choices_) tokens += choice->tokens();
    use->settle_tokens(tokens);
  }
  void pump(std::size_t most) {
    for (auto& choice : choices_) choice->pump(most);
  }
  bool all_closed() const {
    return std::all_of(choices_.begin(), choices_.end(), [](auto& c) { return c->closed(); });
  }
  // Why there is no answer, or no more of it: a choice failed, or none began before its deadline.
  std::optional<ApiError> failure() const;
  // Whether the status can be 200: some choice has a token, or an end other than its deadline.
  bool has_begun() const {
    return std::any_of(choices_.begin(), choices_.end(), [](auto& c) {
      return c->tokens() > 0 || (c->closed() && c->finish().reason != FinishReason::kTimeout);
    });
  }
  // Kept for an answer that is sent at its end.
  std::size_t bytes() const {
    std::size_t sum = 0;
    for (const auto& choice : choices_) sum += choice->bytes();
    return sum;
  }
  std::string head(const char* object) const;
  json::object usage() const;
  json::object timings() const;
  std::vector<std::size_t> shown() const;  // of choices_
  // The whole answer; refers to this object.
  Reply whole();
  std::string last_frames() const;

  Api& api_;
  Exchange& exchange_;
  Read read_;
  const TextEndpoint* endpoint_ = nullptr;  // from start() on
  Call call_;                               // from start() on; choices_ refer to it
  std::int64_t created_ = 0, prompt_tokens_ = 0;
  std::string chunk_head_;  // the beginning of every frame
  std::vector<std::unique_ptr<ChoiceReader>> choices_;
  std::shared_ptr<const Call> kept_call_;  // for texts that are kept
  std::uint64_t live_key_ = 0;
  bool headers_sent_ = false;
};

asio::awaitable<void> Answer::run() {
  auto job = [this, waker = exchange_.waker()] { return start(waker); };
  std::optional<Reply> refused = co_await exchange_.on_worker(job);
  if (refused) {
    keep_refused(refused->error);
    co_await send_reply(exchange_, std::move(*refused));
  } else {
    co_await answer();
    if (const Written* written = exchange_.request().written.get(); written && !choices_.empty())
      api_.engine->written(choices_.front()->stream().id(), *written);
  }
}

void Answer::keep_refused(const std::string& why) {
  const HttpRequest& http = exchange_.request();
  Account a;
  a.label = http.id, a.tenant = http.tenant;
  a.submitted_unix_ms = unix_seconds() * 1000;
  a.stamps = {.received = http.received_ns, .body = http.body_ns, .taken = http.taken_ns};
  if (call_.request.stamps.received > 0) a.stamps = call_.request.stamps;
  a.written = http.written;
  a.reason = FinishReason::kError;
  a.error = why;
  api_.refused.add(std::move(a));
}

std::optional<Reply> Answer::start(std::function<void()> waker) {
  ParsedCall parsed = read_(endpoint_);
  call_.request.stamps = parsed.call.request.stamps;
  if (parsed.error) return Reply(*parsed.error);
  if (api_.draining) return Reply(shutting_down());
  call_ = std::move(parsed.call);
  call_.request.on_ready = std::move(waker);
  created_ = unix_seconds();
  for (const auto& prompt : call_.prompts)
    prompt_tokens_ += static_cast<std::int64_t>(prompt.size());
  const int texts = call_.request.beams ? call_.request.beams->beams : call_.request.choices;
  const auto answers = static_cast<std::int64_t>(call_.prompts.size()) * texts;
  if (auto over = take_tokens(exchange_.request(),
                              prompt_tokens_ + answers * call_.request.max_tokens.value_or(0)))
    return over;
  if (call_.stream) chunk_head_ = "data: " + head(endpoint_->chunk_object) + ",\"choices\":[";
  if (auto error = submit()) return refusal(api_, *error);
  return std::nullopt;
}

// All prompts or none: when one is refused, the ones before it are cancelled.
std::optional<Error> Answer::submit() {
  std::vector<std::shared_ptr<TokenStream>> all;
  for (auto& prompt : call_.prompts) {
    // Made first: they look at the prompt, which then moves to the engine.
    std::vector<std::optional<TextStream>> texts(call_.request.choices);
    if (api_.tokenizer != nullptr)
      for (auto& text : texts)
        text.emplace(*api_.tokenizer, prompt, call_.stops, call_.request.min_tokens);
    Request request = call_.request;
    request.logprobs |= call_.shown > 0;
    std::shared_ptr<const std::vector<std::int32_t>> kept;
    if (call_.record) {
      // Drawn here, so that it is known before the end; exact in the numbers of JavaScript.
      if (!request.sampling.seed()) request.sampling.set_seed(draw_seed() >> 11);
      kept = std::make_shared<const std::vector<std::int32_t>>(prompt);
    }
    const std::uint64_t seed = request.sampling.seed().value_or(0);
    request.prompt = call_.echoes.empty() ? std::move(prompt) : prompt;
    auto streams = api_.engine->submit_choices(std::move(request));
    if (!streams.ok()) {
      cancel();
      return streams.error();
    }
    // What throws from here on leaves streams without a reader.
    Canceller canceller{*streams};
    for (std::size_t i = 0; i < streams->size(); ++i)
      choices_.push_back(std::make_unique<ChoiceReader>(call_, std::move(texts[i]),
                                                        static_cast<int>(choices_.size()),
                                                        (*streams)[i], streams->front()));
    if (!call_.request.begun.empty())
      for (auto& choice : choices_) choice->follow(call_.request.begun);
    all.insert(all.end(), streams->begin(), streams->end());
    if (kept) record(std::move(kept), seed, static_cast<int>(streams->size()));
    canceller.armed = false;
  }
  live_key_ = api_.live.add(std::move(all));
  return std::nullopt;
}

void Answer::record(std::shared_ptr<const std::vector<std::int32_t>> prompt, std::uint64_t seed,
                    int n) {
  if (!kept_call_) {
    auto call = std::make_shared<Call>();
    call->request = call_.request;
    call->request.on_ready = nullptr;
    call->request.begun.clear(), call->request.begun_p.clear();
    call->request.allow.reset(), call->request.prediction.reset();
    call->stops = call_.stops;
    call->chat = call_.chat;
    kept_call_ = std::move(call);
  }
  for (int i = 0; i < n; ++i) {
    ChoiceReader& choice = *choices_[choices_.size() - static_cast<std::size_t>(n - i)];
    Text text;
    text.id = choice.stream().id();
    text.label = call_.request.label, text.tenant = call_.request.tenant;
    text.index = choice.index(), text.choice = call_.request.first_choice + i;
    text.seed = seed;
    text.parent = call_.request.parent;
    text.output = call_.request.begun, text.kinds = call_.begun_kinds;
    text.p = call_.request.begun_p;
    text.begun = static_cast<int>(text.output.size());
    text.at_ns.resize(text.output.size()), text.logprobs.resize(text.output.size());
    text.prompt = prompt, text.call = kept_call_, text.endpoint = endpoint_;
    text.stream = choice.shared_stream();
    choice.record(api_.texts.begin(std::move(text)));
  }
}

// As the status before the headers are sent, as a frame after them.
asio::awaitable<void> Answer::fail(ApiError error) {
  if (!headers_sent_) {
    Headers headers;
    if (error.code == "unavailable") headers.emplace_back("Retry-After", "1");
    Reply reply(error, std::move(headers));
    co_await send_reply(exchange_, std::move(reply));
    co_return;
  }
  std::string frame = "data: " + error_body(error) + "\n\n";
  bool sent = co_await exchange_.send(std::move(frame));
  if (sent) co_await exchange_.end();
}

std::optional<ApiError> Answer::failure() const {
  for (const auto& choice : choices_) {
    if (!choice->failed()) continue;
    if (choice->finish().error == kOutOfMemory) return out_of_memory();
    if (choice->finish().reason == FinishReason::kError)
      return ApiError{500, "server_error", choice->finish().error, "", "generation_failed"};
    return shutting_down();
  }
  if (!all_closed() || has_begun()) return std::nullopt;
  return ApiError{
      504, "timeout_error",
      fmt::format("timeout: {} s passed before the first token",
                  std::chrono::duration<double>(call_.request.timeout.value_or(0ms)).count()),
      "timeout", "timeout"};
}

// Whole, or as a stream of events: a frame per token as they come.
asio::awaitable<void> Answer::answer() {
  while (true) {
    pump(call_.stream ? 1 : SIZE_MAX);
    if (call_.stream) {
      bool here = co_await send_news();
      if (!here) co_return;
    }
    if (auto error = failure()) {
      co_await fail(std::move(*error));
      co_return;
    }
    if (all_closed()) break;
    if (!call_.stream && !exchange_.hold(static_cast<std::int64_t>(bytes()))) {
      Reply reply = too_many_answers_reply();
      co_await send_reply(exchange_, std::move(reply));
      co_return;
    }
    bool here = co_await exchange_.wait();
    if (!here) co_return;
  }
  settle();
  if (!call_.stream) {
    auto job = [this] { return whole(); };
    Reply reply = co_await exchange_.on_worker(job);
    co_await send_reply(exchange_, std::move(reply));
    co_return;
  }
  auto job = [this] { return last_frames(); };
  std::string rest = co_await exchange_.on_worker(job);
  bool sent = co_await exchange_.send(std::move(rest));
  if (sent) co_await exchange_.end();
}

// Sends a frame for each token that has text, in one write or, where a slow reader has left many, in
// pieces; before the first the headers. False: the client is gone.
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
        frames += endpoint_->choice(call_, api_.tokenizer, choice->take(), true);
        frames += call_.include_usage ? "],\"usage\":null}\n\n" : "]}\n\n";
      }
      if (frames.size() >= kPieceBytes) {
        bool here = co_await exchange_.send(std::exchange(frames, {}));
        if (!here) co_return false;
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
  append_json(out, endpoint_->id_prefix + exchange_.request().id);
  out += fmt::format(",\"object\":\"{}\",\"created\":{},\"model\":", object, created_);
  append_json(out, api_.model_name);
  out += ",\"system_fingerprint\":";
  append_json(out, api_.fingerprint);
  if (call_.parent.empty()) return out;
  out += ",\"parent\":";
  append_json(out, call_.parent);
  return out;
}

json::object Answer::usage() const {
  std::int64_t prompt = 0, cached = 0, completion = 0, reasoning = 0, predicted = 0, accepted = 0;
  for (const auto& choice : choices_) {
    predicted += choice->finish().account.predicted;
    accepted += choice->finish().account.predicted_accepted;
    reasoning += choice->reasoning_tokens();
    completion += choice->completion_tokens();
    if (choice->index() % call_.request.choices != 0) continue;  // the prompt counts once
    prompt += choice->finish().account.usage.prompt_tokens;
    cached += choice->finish().account.usage.cached_tokens;
  }
  json::object details{{"reasoning_tokens", reasoning}};
  if (call_.predicts) {
    // Of the answer: what was drawn behind a stop string is not part of it.
    accepted = std::min(accepted, completion);
    details["accepted_prediction_tokens"] = accepted;
    details["rejected_prediction_tokens"] = predicted - accepted;
  }
  return {{"prompt_tokens", prompt},
          {"completion_tokens", completion},
          {"total_tokens", prompt + completion},
          {"prompt_tokens_details", {{"cached_tokens", cached}}},
          {"completion_tokens_details", std::move(details)}};
}

json::object Answer::timings() const {
  json::array list;
  for (const auto& choice : choices_) {
    json::object one =
        account_json(choice->finish().account, exchange_.request().rights.is_operator);
    one["index"] = choice->index();
    one["completion_tokens"] = choice->completion_tokens();
    one["seed"] = choice->finish().seed;
    one["inter_token_ms"] = token_latency_json(choice->times());
    list.emplace_back(std::move(one));
  }
  return {{"choices", std::move(list)}};
}

// All, or of each prompt the best.
std::vector<std::size_t> Answer::shown() const {
  std::vector<std::size_t> out(choices_.size());
  std::iota(out.begin(), out.end(), std::size_t{0});
  if (call_.shown == 0) return out;
  const auto better = [this](std::size_t a, std::size_t b) {
    return choices_[a]->mean_logprob() > choices_[b]->mean_logprob();
  };
  std::size_t kept = 0;
  for (std::size_t i = 0; i < out.size(); i += static_cast<std::size_t>(call_.request.choices)) {
    const auto first = out.begin() + static_cast<std::ptrdiff_t>(i);
    std::stable_sort(first, first + call_.request.choices, better);
    std::copy_n(first, call_.shown, out.begin() + static_cast<std::ptrdiff_t>(kept));
    kept += static_cast<std::size_t>(call_.shown);
  }
  out.resize(kept);
  return out;
}

Reply Answer::whole() {
  Pieces out;
  out.add(head(endpoint_->object) + ",\"choices\":");
  std::vector<std::size_t> list = shown();
  const std::size_t size = list.size();
  out.list(size, [this, list = std::move(list)](std::string& to, std::size_t i) {
    Part part = choices_[list[i]]->take();
    part.index = static_cast<int>(i);
    to += endpoint_->choice(call_, api_.tokenizer, part, false);
  });
  out.add(1, [this](std::string& to, std::size_t) {
    to += ",\"usage\":" + to_json(usage());
    if (call_.timings) to += ",\"vitrine\":" + to_json(timings());
    to += "}";
  });
  return reply_in_pieces(std::move(out), bytes());
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

std::string finish_reason_json(const Part& part) {
  std::string out = ",\"finish_reason\":";
  if (part.finish_reason == nullptr) return out + "null";
  append_json(out, part.finish_reason);
  if (part.scored) out += ",\"score\":" + (part.score ? to_json(*part.score) : "null");
  return out;
}

asio::awaitable<void> generate_text(Api& api, Exchange& exchange, const TextEndpoint& text) {
  Answer answer(api, exchange, [&](const TextEndpoint*& endpoint) {
    endpoint = &text;
    return read_call(api, exchange.request(), text.read);
  });
  co_await answer.run();
}

asio::awaitable<void> generate_call(Api& api, Exchange& exchange, ReadCall read) {
  Answer answer(api, exchange, [&api, &exchange, read](const TextEndpoint*& endpoint) {
    return read(api, exchange.request(), endpoint);
  });
  co_await answer.run();
}

}  // namespace vitrine
