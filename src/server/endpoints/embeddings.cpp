// POST /v1/embeddings: an input is a sequence of the engine like any other, without output. Of a
// request's inputs twice as many are submitted at a time as the engine runs.
#include <algorithm>
#include <cstring>

#include "base/process_clock.h"
#include "engine/engine.h"
#include "server/answer/pieces.h"
#include "server/api.h"
#include "server/http/key_limits.h"
#include "server/request/json_fields.h"
#include "server/request/limits.h"
#include "server/request/prompt_fields.h"

namespace vitrine {
namespace {

using namespace std::chrono_literals;

struct EmbeddingCall {
  std::vector<std::vector<std::int32_t>> inputs;
  Request request;  // what the inputs share
  int dimensions = 0;
  bool base64 = false;
};

struct ParsedEmbedding {
  EmbeddingCall call;
  std::optional<ApiError> error;
};

void read_form(const Api& api, JsonFields& fields, EmbeddingCall& call) {
  int dim = api.engine->info().dim;
  call.dimensions = static_cast<int>(fields.integer("dimensions", 1, dim).value_or(dim));
  std::string format = fields.text("encoding_format").value_or("float");
  call.base64 = format == "base64";
  if (!call.base64 && format != "float")
    fields.fail("encoding_format", fmt::format("found {}, allowed \"float\", \"base64\"",
                                               describe(json::value(format))));
  call.request.pooling = api.pooling;
  if (auto name = fields.text("pooling")) {
    auto pooling = parse_pooling(*name);
    if (pooling.ok())
      call.request.pooling = *pooling;
    else
      fields.fail("pooling", pooling.error().message);
  }
}

void check_lengths(const Api& api, JsonFields& fields, const EmbeddingCall& call) {
  for (std::size_t i = 0; i < call.inputs.size() && !fields.error(); ++i) {
    std::string name = call.inputs.size() == 1 ? "input" : fmt::format("input[{}]", i);
    std::size_t tokens = call.inputs[i].size();
    if (tokens == 0) fields.fail(name, "found no tokens, allowed at least one");
    if (tokens > static_cast<std::size_t>(api.context))
      fields.fail(
          name, fmt::format("found {} tokens, allowed up to {}, the context", tokens, api.context),
          "context_length_exceeded");
  }
}

ParsedEmbedding parse(const Api& api, const HttpRequest& http) {
  ParsedEmbedding out;
  json::value body;
  if ((out.error = parse_body(http.body, body))) return out;
  JsonFields fields(body.get_object());
  read_model_name(api, fields);
  read_service(api, http, fields, out.call.request);
  read_form(api, fields, out.call);
  out.call.request.stamps.parsed = process_ns();
  PromptField input{.name = "input", .plural = "inputs", .most = kMaxInputs};
  input.may_be_empty = false;
  out.call.inputs = read_prompts(api, fields, input).ids;
  out.call.request.stamps.tokenized = process_ns();
  check_lengths(api, fields, out.call);
  out.call.request.max_tokens = 0;
  fields.ignore({"user"});
  out.error = fields.close();
  return out;
}

void append_base64(std::string& out, std::span<const float> vector) {
  static constexpr const char* kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes(vector.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), vector.data(), bytes.size());  // little-endian, as clients expect
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k)
      bits = bits << 8 | (k < n ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) out += k <= n ? kDigits[bits >> (18 - 6 * k) & 63] : '=';
  }
}

// The inputs of one request on their way through the engine.
class Embeddings {
 public:
  Embeddings(Api& api, Exchange& exchange) : api_(api), exchange_(exchange) {}
  // What still runs has no reader any more.
  ~Embeddings() {
    for (Running& r : running_) {
      r.stream->cancel();
      api_.live.remove(r.key);
    }
    if (const auto& use = exchange_.request().use) use->settle_tokens(submitted_tokens_);
  }
  Embeddings(const Embeddings&) = delete;

  asio::awaitable<void> run();

 private:
  struct Running {
    std::size_t input;
    std::shared_ptr<TokenStream> stream;
    std::uint64_t key;  // in api_.live
  };
  // On a worker: from the body to the first sequences in the engine's queue. A reply: refused.
  std::optional<Reply> start(std::function<void()> waker);
  // More of them, on a worker.
  std::optional<Reply> submit();
  // What is left of a time that began when the request was read.
  std::chrono::milliseconds left(std::chrono::milliseconds all) const {
    auto passed = std::chrono::steady_clock::now() - began_;
    return all - std::chrono::duration_cast<std::chrono::milliseconds>(passed);
  }
  // Takes the vectors of those that have ended.
  std::optional<ApiError> collect();
  std::optional<ApiError> take(const Running& r);
  // The answer; refers to this object.
  Reply answer() const;

  Api& api_;
  Exchange& exchange_;
  EmbeddingCall call_;
  std::chrono::steady_clock::time_point began_;
  std::size_t submitted_ = 0;
  std::vector<Running> running_;
  std::vector<std::vector<float>> vectors_;
  std::int64_t tokens_ = 0, submitted_tokens_ = 0;
  std::size_t held_ = 0;  // bytes of all vectors
};

std::optional<Reply> Embeddings::start(std::function<void()> waker) {
  ParsedEmbedding parsed = parse(api_, exchange_.request());
  if (parsed.error) return Reply(*parsed.error);
  call_ = std::move(parsed.call);
  call_.request.on_ready = std::move(waker);
  began_ = std::chrono::steady_clock::now();
  vectors_.resize(call_.inputs.size());
  std::int64_t tokens = 0;
  for (const auto& input : call_.inputs) tokens += static_cast<std::int64_t>(input.size());
  if (auto over = take_tokens(exchange_.request(), tokens)) return over;
  const std::size_t floats = call_.inputs.size() * static_cast<std::size_t>(call_.dimensions);
  held_ = floats * sizeof(float);
  if (!exchange_.hold(static_cast<std::int64_t>(held_))) return too_many_answers_reply();
  return submit();
}

// A full queue is no error while inputs of this request run: the others are submitted when these
// have ended.
std::optional<Reply> Embeddings::submit() {
  auto most = 2 * static_cast<std::size_t>(api_.engine->memory().sequences);
  while (submitted_ < call_.inputs.size() && running_.size() < most) {
    Request request = call_.request;
    request.prompt = call_.inputs[submitted_];  // a copy: a full queue does not give it back
    if (request.timeout) request.timeout = std::max(1ms, left(*request.timeout));
    running_.reserve(running_.size() + 1);
    auto stream = api_.engine->submit(std::move(request));
    if (!stream.ok() && stream.error().code == ErrorCode::kBusy && !running_.empty()) break;
    if (!stream.ok()) return refusal(api_, stream.error());
    // No stream goes without a reader, should there be no memory.
    running_.push_back({submitted_, *stream, 0});
    submitted_tokens_ += static_cast<std::int64_t>(call_.inputs[submitted_].size());
    running_.back().key = api_.live.add({*stream});
    std::vector<std::int32_t>().swap(call_.inputs[submitted_++]);
  }
  return std::nullopt;
}

std::optional<ApiError> Embeddings::take(const Running& r) {
  const Finish& finish = r.stream->wait();
  switch (finish.reason) {
    case FinishReason::kError:
      if (finish.error == kOutOfMemory) return out_of_memory();
      return ApiError{500, "server_error", fmt::format("input[{}]: {}", r.input, finish.error), "",
                      "embedding_failed"};
    case FinishReason::kTimeout:
      return ApiError{504, "timeout_error", "timeout: passed before all inputs were through",
                      "timeout", "timeout"};
    case FinishReason::kCancelled:
      return shutting_down();
    default:
      break;
  }
  tokens_ += finish.account.usage.prompt_tokens;
  std::vector<float>& vector = vectors_[r.input];
  vector = r.stream->embedding();
  if (static_cast<int>(vector.size()) > call_.dimensions) {
    vector.resize(call_.dimensions);
    normalise(vector);
  }
  return std::nullopt;
}

std::optional<ApiError> Embeddings::collect() {
  std::optional<ApiError> error;
  std::vector<TokenEvent> events;
  std::vector<TokenLogprob> top;
  std::erase_if(running_, [&](const Running& r) {
    if (error || !r.stream->read(events, top)) return false;
    error = take(r);
    api_.live.remove(r.key);
    return true;
  });
  return error;
}

Reply Embeddings::answer() const {
  Pieces out;
  out.add("{\"object\":\"list\",\"data\":");
  out.list(vectors_.size(), [this](std::string& to, std::size_t i) {
    to += fmt::format("{{\"object\":\"embedding\",\"index\":{},\"embedding\":", i);
    to += call_.base64 ? '"' : '[';
    if (call_.base64) append_base64(to, vectors_[i]);
    for (std::size_t k = 0; k < vectors_[i].size() && !call_.base64; ++k)
      fmt::format_to(std::back_inserter(to), "{}{}", k > 0 ? "," : "", vectors_[i][k]);
    to += call_.base64 ? "\"}" : "]}";
  });
  out.add(",\"model\":" + to_json(json::value(api_.model_name)));
  out.add(",\"usage\":" +
          to_json(json::object{{"prompt_tokens", tokens_}, {"total_tokens", tokens_}}) + "}");
  return reply_in_pieces(std::move(out), held_);
}

asio::awaitable<void> Embeddings::run() {
  auto first = [this, waker = exchange_.waker()] { return start(waker); };
  std::optional<Reply> reply = co_await exchange_.on_worker(first);
  while (!reply) {
    bool here = co_await exchange_.wait();
    if (!here) co_return;
    if (auto error = collect()) {
      Headers headers;
      if (error->status == 503) headers.emplace_back("Retry-After", "1");
      reply.emplace(*error, std::move(headers));
    } else if (submitted_ < call_.inputs.size()) {
      auto more = [this] { return submit(); };
      reply = co_await exchange_.on_worker(more);
    } else if (running_.empty()) {
      break;
    }
  }
  if (!reply) {
    auto job = [this] { return answer(); };
    reply = co_await exchange_.on_worker(job);
  }
  co_await send_reply(exchange_, std::move(*reply));
}

asio::awaitable<void> handle(Api& api, Exchange& exchange) {
  if (api.draining) {
    Reply reply(shutting_down());
    co_await send_reply(exchange, std::move(reply));
    co_return;
  }
  Embeddings embeddings(api, exchange);
  co_await embeddings.run();
}

}  // namespace

extern const Endpoint kEndpoint_embeddings;
const Endpoint kEndpoint_embeddings{"POST", {"/v1/embeddings"}, handle};

}  // namespace vitrine
