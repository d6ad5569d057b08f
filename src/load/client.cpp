#include "load/client.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>

#include "load/http_connection.h"
#include "load/slow_readers.h"

namespace vitrine::load {
namespace {

// A closed-loop client pauses after a failed request. Otherwise it would flood a server that
// refuses at once.
constexpr auto kRestAfterFailure = std::chrono::milliseconds(50);
constexpr std::size_t kMaxErrorText = 300;

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  auto seconds = [](timeval t) { return double(t.tv_sec) + 1e-6 * double(t.tv_usec); };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Thousands of connections need as many descriptors.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

std::string request_head(const Target& target, std::string_view method_and_path) {
  bool v6 = target.host.find(':') != std::string::npos;
  std::string out = fmt::format("{} HTTP/1.1\r\nHost: {}{}{}:{}\r\n", method_and_path,
                                v6 ? "[" : "", target.host, v6 ? "]" : "", target.port);
  if (!target.api_key.empty()) out += fmt::format("Authorization: Bearer {}\r\n", target.api_key);
  return out;
}

Result<Endpoints> resolve(const Target& target) {
  asio::io_context io;
  boost::system::error_code error;
  Endpoints found =
      asio::ip::tcp::resolver(io).resolve(target.host, std::to_string(target.port), error);
  if (error)
    return make_error(ErrorCode::kNotFound, "{}:{}: {}", target.host, target.port, error.message());
  return found;
}

class Client;

// A connection and the completion it is working on.
class Worker final : public HttpHandler {
 public:
  Worker(Client& client, asio::io_context& io, const Endpoints& endpoints)
      : client_(client), connection_(io, endpoints, *this), rest_(io) {}
  void start(const Target& target, const PlannedRequest& planned, double scheduled, double now,
             double timeout_s);
  // Calls f after a delay.
  template <typename F>
  void rest(F f) {
    rest_.expires_after(kRestAfterFailure);
    rest_.async_wait([f](boost::system::error_code) { f(); });
  }
  void on_body(int status, std::string_view bytes) override;
  void on_end(HttpEnd end, int status, const std::string& error) override;

 private:
  Client& client_;
  HttpConnection connection_;
  asio::steady_timer rest_;
  RequestTrace trace_;
  std::optional<CompletionStream> stream_;
};

// The first `count` (0: no end) requests from `first` on, in steps of `stride`.
struct Phase {
  bool open = false;
  int concurrency = 1;
  std::int64_t first = 0, stride = 1;
  std::int64_t count = 0;
  double duration_s = 0;
};

class Client {
 public:
  Client(const Target& target, const LoadSpec& spec, Endpoints endpoints)
      : target_(target), spec_(spec), endpoints_(std::move(endpoints)), arrival_(io_) {}
  LoadTrace run(const Phase& phase);
  double now() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  void on_end(Worker& worker, RequestTrace trace);

 private:
  struct Waiting {
    PlannedRequest planned;
    double scheduled;
  };
  bool more() const;
  PlannedRequest take_next();
  void schedule_arrival(double after);
  void arrive(Waiting request);
  void next_in_loop(Worker& worker);
  Worker* free_worker();

  const Target& target_;
  const LoadSpec& spec_;
  Endpoints endpoints_;
  asio::io_context io_{1};
  asio::steady_timer arrival_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Worker*> idle_;
  std::deque<Waiting> waiting_;  // arrived, and every connection is busy
  Phase phase_;
  std::int64_t taken_ = 0;  // requests of the phase so far
  LoadTrace trace_;
  std::chrono::steady_clock::time_point start_;
};

void Worker::start(const Target& target, const PlannedRequest& planned, double scheduled,
                   double now, double timeout_s) {
  trace_ = {};
  trace_.asked_tokens = planned.output_tokens;
  trace_.scheduled = scheduled;
  trace_.sent = now;
  stream_.emplace(trace_);
  connection_.send(completion_request(target, planned), timeout_s);
}

void Worker::on_body(int status, std::string_view bytes) {
  if (status == 200)
    stream_->feed(bytes, client_.now());
  else if (trace_.error.size() < kMaxErrorText)
    trace_.error += bytes.substr(0, kMaxErrorText - trace_.error.size());
}

void Worker::on_end(HttpEnd end, int status, const std::string& error) {
  trace_.status = status;
  stream_->finish(client_.now());
  if (end == HttpEnd::kTimeout)
    trace_.outcome = Outcome::kTimeout;
  else if (end == HttpEnd::kConnect)
    trace_.outcome = Outcome::kConnect;
  else if (end == HttpEnd::kWhole && status != 200)
    trace_.outcome = status == 429 ? Outcome::kRejected : Outcome::kHttpError;
  else if (end == HttpEnd::kBroken && trace_.outcome != Outcome::kStreamError)
    trace_.outcome = Outcome::kBroken;
  if (!error.empty()) trace_.error = error;
  client_.on_end(*this, std::move(trace_));
}

LoadTrace Client::run(const Phase& phase) {
  phase_ = phase;
  taken_ = 0;
  trace_ = {};
  start_ = std::chrono::steady_clock::now();
  double cpu = cpu_seconds();
  if (phase.open) {
    if (more()) schedule_arrival(0);
  } else {
    for (int i = 0; i < phase.concurrency && more(); ++i) next_in_loop(*free_worker());
  }
  io_.restart();
  io_.run();
  trace_.cpu_s = cpu_seconds() - cpu;
  for (const RequestTrace& r : trace_.requests) trace_.wall_s = std::max(trace_.wall_s, r.end);
  return std::move(trace_);
}

bool Client::more() const {
  return (phase_.count == 0 || taken_ < phase_.count) &&
         (phase_.duration_s == 0 || now() < phase_.duration_s);
}

PlannedRequest Client::take_next() {
  return plan_request(spec_, phase_.first + phase_.stride * taken_++);
}

// The next arrival is scheduled one gap after the previous one (`after`), even when the client is
// late.
void Client::schedule_arrival(double after) {
  Waiting next{take_next(), after};
  next.scheduled += next.planned.gap_s;
  if (phase_.duration_s > 0 && next.scheduled >= phase_.duration_s) return;
  auto at = std::chrono::duration<double>(next.scheduled);
  arrival_.expires_at(start_ + std::chrono::duration_cast<std::chrono::nanoseconds>(at));
  arrival_.async_wait([this, next = std::move(next)](boost::system::error_code) mutable {
    double scheduled = next.scheduled;
    arrive(std::move(next));
    bool left = phase_.count == 0 || taken_ < phase_.count;
    if (left) schedule_arrival(scheduled);
  });
}

void Client::arrive(Waiting request) {
  Worker* worker = free_worker();
  if (worker == nullptr)
    waiting_.push_back(std::move(request));
  else
    worker->start(target_, request.planned, request.scheduled, now(), spec_.timeout_s);
}

void Client::next_in_loop(Worker& worker) {
  double sent = now();
  worker.start(target_, take_next(), sent, sent, spec_.timeout_s);
}

Worker* Client::free_worker() {
  if (!idle_.empty()) {
    Worker* worker = idle_.back();
    idle_.pop_back();
    return worker;
  }
  if (static_cast<int>(workers_.size()) >= spec_.max_connections) return nullptr;
  workers_.push_back(std::make_unique<Worker>(*this, io_, endpoints_));
  return workers_.back().get();
}

void Client::on_end(Worker& worker, RequestTrace trace) {
  bool ok = trace.outcome == Outcome::kOk;
  trace_.requests.push_back(std::move(trace));
  if (phase_.open) {
    if (waiting_.empty()) return idle_.push_back(&worker);
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    return worker.start(target_, next.planned, next.scheduled, now(), spec_.timeout_s);
  }
  if (!more()) return idle_.push_back(&worker);
  if (ok) return next_in_loop(worker);
  worker.rest([this, &worker] {
    if (more())
      next_in_loop(worker);
    else
      idle_.push_back(&worker);
  });
}

// Collects one small answer.
class Fetch final : public HttpHandler {
 public:
  void on_body(int, std::string_view bytes) override {
    if (body.size() < kMaxBody) body += bytes;
  }
  void on_end(HttpEnd end, int status, const std::string& error) override {
    this->end = end, this->status = status, this->error = error;
  }
  static constexpr std::size_t kMaxBody = 1 << 20;
  std::string body, error;
  HttpEnd end = HttpEnd::kBroken;
  int status = 0;
};

}  // namespace

std::string completion_request(const Target& target, const PlannedRequest& planned) {
  std::string body = request_body(planned, target.model);
  return request_head(target, "POST /v1/completions") +
         fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.size()) +
         body;
}

Result<Target> parse_url(const std::string& url) {
  auto bad = [&] {
    return make_error(ErrorCode::kInvalid, "--url: found '{}', expected http://HOST[:PORT]", url);
  };
  std::string_view rest = url;
  if (!rest.starts_with("http://")) return bad();
  rest.remove_prefix(7);
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.find_first_of("/?#@ \r\n") != std::string_view::npos) return bad();
  Target out;
  std::size_t colon = rest.rfind(':');
  bool bracket = rest.starts_with('[');
  if (bracket && rest.find(']') == std::string_view::npos) return bad();
  if (colon != std::string_view::npos && (!bracket || colon > rest.find(']'))) {
    std::string port(rest.substr(colon + 1));
    bool digits = !port.empty() && port.size() <= 5 &&
                  port.find_first_not_of("0123456789") == std::string::npos;
    out.port = digits ? std::stoi(port) : 0;
    rest = rest.substr(0, colon);
  } else {
    out.port = 80;
  }
  if (bracket) rest = rest.substr(1, rest.size() - 2);
  out.host = rest;
  if (out.host.empty() || out.port < 1 || out.port > 65535) return bad();
  return out;
}

Result<ServerInfo> ask_info(const Target& target) {
  VT_TRY(Endpoints endpoints, resolve(target));
  asio::io_context io;
  Fetch fetch;
  HttpConnection connection(io, endpoints, fetch);
  connection.send(request_head(target, "GET /api/info") + "\r\n", 10);
  io.run();
  std::string where = fmt::format("http://{}:{}/api/info", target.host, target.port);
  if (fetch.end != HttpEnd::kWhole)
    return make_error(ErrorCode::kUnavailable, "{}: {}", where, fetch.error);
  if (fetch.status != 200)
    return make_error(ErrorCode::kUnavailable, "{}: answered {}: {}", where, fetch.status,
                      fetch.body.substr(0, kMaxErrorText));
  VT_TRY(json::value info, parse_json(fetch.body, where));
  ServerInfo out;
  boost::system::error_code error;
  if (const json::value* vocab = info.find_pointer("/model/vocab", error))
    out.vocab = vocab->is_int64() ? static_cast<int>(vocab->get_int64()) : 0;
  if (const json::value* name = info.find_pointer("/model/name", error))
    if (name->is_string()) out.model = name->get_string();
  return out;
}

Result<LoadTrace> run_load(const Target& target, const LoadSpec& spec) {
  VT_TRY(Endpoints endpoints, resolve(target));
  raise_descriptor_limit();
  Client client(target, spec, std::move(endpoints));
  bool open = spec.rate > 0;
  int concurrency = std::min(spec.concurrency, spec.max_connections);
  std::optional<SlowReaders> slow;
  if (spec.slow_readers > 0) slow.emplace(target, spec, spec.slow_readers, spec.slow_tokens);
  if (spec.warmup > 0) client.run({false, concurrency, -1, -1, spec.warmup, 0});
  return client.run({open, concurrency, 0, 1, spec.requests, spec.duration_s});
}

}  // namespace vitrine::load
