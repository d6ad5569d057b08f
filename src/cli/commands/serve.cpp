// vitrine serve: the HTTP server with OpenAI's API.
#include <arpa/inet.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "base/log.h"
#include "cli/chat_flags.h"
#include "cli/command.h"
#include "cli/confinement.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "cli/server_signals.h"
#include "glass/folder.h"
#include "server/api.h"
#include "server/http/http.h"
#include "server/request/limits.h"

namespace vitrine {
namespace {

struct Flags {
  ModelFlag model;
  EngineFlags engine;
  SamplingFlags sampling;
  ChatFlags chat;
  HttpOptions http;
  Confinement confinement;
  std::string model_name, log_level = "info", pooling, ui_dir, record;
  int record_mib = static_cast<int>(Texts::kDefaultBytes >> 20);
  int drain_seconds = 30, stream_backlog = Api::kDefaultBacklog;
  double default_timeout = 0;
  bool share_cache = false, no_ui = false, no_lab = false;
};

void add_http_flags(const CommandLine& line, HttpOptions& http) {
  constexpr int kMaxThreads = 256;
  constexpr std::int64_t kMaxBytes = std::int64_t{1} << 40;
  line.option("--host", http.host, "address to listen on").show_default();
  line.option("--port", http.port, {0, 65535}, "port to listen on; 0: any free one").show_default();
  line.option("--io-threads", http.io_threads, {1, kMaxThreads}, "threads for connections")
      .show_default();
  line.option("--worker-threads", http.worker_threads, {1, kMaxThreads},
              "threads for JSON and tokenizing")
      .show_default();
  line.option("--tls-cert", http.tls_certificate, "PEM file: serve HTTPS, with --tls-key");
  line.option("--tls-key", http.tls_key, "PEM file of the certificate's key");
  line.option(
      "--api-keys", http.api_keys_file,
      "file of API keys, a line each: KEY [NAME [WEIGHT]] [OPTION=VALUE ..]; all but /health "
      "and the page needs one; options: role, weight, min_priority, max_parallel_requests, "
      "rpm_limit, "
      "tpm_limit");
  line.option("--allow-host", http.allow_hosts,
              "name that clients may use for this server, beside loopback; may be repeated");
  line.option("--cors-origin", http.cors_origins,
              "web origin that may read answers; '*': any; may be repeated");
  line.option("--max-body-bytes", http.max_body_bytes, {1, kMaxBytes}, "largest request body")
      .show_default();
  line.option("--max-bodies-bytes", http.max_bodies_bytes, {1, kMaxBytes},
              "most bytes of the bodies of all requests in work")
      .show_default();
  line.option("--max-answers-bytes", http.max_answers_bytes, {1, kMaxBytes},
              "most bytes of all answers that are not sent yet")
      .show_default();
  line.option("--max-header-bytes", http.max_header_bytes, {256, 16 << 20}, "largest request head")
      .show_default();
  line.option("--max-headers", http.max_headers, {1, 100000}, "most header fields").show_default();
  line.option("--max-connections", http.max_connections, {1, 1 << 20}, "most open connections")
      .show_default();
  line.option("--max-connections-per-address", http.max_connections_per_address, {1, 1 << 20},
              "most of them from one address; an IPv6 client is its /64")
      .show_default();
  line.option("--min-body-rate", http.min_body_rate, {1, 1 << 30},
              "bytes a second that a body must have on average, after --body-timeout")
      .show_default();
}

LogLevel log_level(const std::string& name) {
  if (name == "debug") return LogLevel::kDebug;
  if (name == "info") return LogLevel::kInfo;
  return name == "warn" ? LogLevel::kWarn : LogLevel::kError;
}

std::string default_name(const std::string& model_path) {
  std::filesystem::path path(model_path);
  if (path.filename().empty()) path = path.parent_path();  // "folder/"
  bool gguf = path.extension() == ".gguf";
  return (gguf ? path.stem() : path.filename()).string();
}

// Whether an address is this machine's own; a name counts as one of the network.
bool loopback(const std::string& host) {
  in_addr v4;
  in6_addr v6;
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  if (::inet_pton(AF_INET6, host.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
  return host == "localhost";
}

// Without keys everybody sees everything that is kept.
RecordMode record_mode_of(const Flags& f) {
  if (auto mode = record_mode(f.record)) return *mode;
  const bool open = f.http.api_keys_file.empty() && !loopback(f.http.host);
  return open ? RecordMode::kNone : RecordMode::kAsked;
}

// The server's address as a URL has it. `open`: one that a browser on this machine can open.
std::string address(const HttpOptions& http, int port, bool open) {
  std::string host = http.host;
  in6_addr v6;
  if (::inet_pton(AF_INET6, host.c_str(), &v6) == 1) {
    if (open && IN6_IS_ADDR_UNSPECIFIED(&v6)) host = "::1";
    host = "[" + host + "]";
  } else if (open && host == "0.0.0.0") {
    host = "127.0.0.1";
  }
  return fmt::format("{}://{}:{}", http.tls_certificate.empty() ? "http" : "https", host, port);
}

// For a person the page comes first; programs look for the line that says ready.
void print_ready(const Flags& f, const Api& api, const HttpServer& http) {
  const std::string url = address(f.http, http.port(), false);
  if (!api.page.empty()) fmt::print("open {} in a browser\n", address(f.http, http.port(), true));
  fmt::print("vitrine is ready: {} (model {}, backend {})\n", url, api.model_name,
             api.engine->info().backend_description);
  if (f.http.api_keys_file.empty() && f.http.tls_certificate.empty())
    fmt::print(
        "try: curl {}/v1/chat/completions -d '{{\"messages\": [{{\"role\": \"user\", "
        "\"content\": \"Tell me a story about a fox.\"}}]}}'\n",
        url);
  std::fflush(stdout);
}

// Answers requests on threads of its own until it is waited for or goes away; then nothing is left of
// the server's connections, and signals do not reach it any more.
class Running {
 public:
  Running(ServerSignals& signals, std::unique_ptr<HttpServer>& http)
      : signals_(signals), http_(http), thread_([this] { status_ = http_->run(), ended_ = true; }) {
    signals_.listening(*http_);
  }
  ~Running() {
    signals_.release();
    if (thread_.joinable()) {
      http_->stop();
      thread_.join();
    }
    http_.reset();
  }
  bool ended() const { return ended_; }
  // Until it has ended, and whether that was by request: the program's code.
  Result<int> wait() {
    thread_.join();
    VT_RETURN_IF_ERROR(status_);
    return 0;
  }

 private:
  ServerSignals& signals_;
  std::unique_ptr<HttpServer>& http_;
  Status status_ = Ok{};  // once it has ended
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

Result<int> serve(const Flags& f) {
  set_log_level(log_level(f.log_level));
  // Goes last: its limit on the time to end covers all that follows.
  ServerSignals signals(std::chrono::seconds(f.drain_seconds),
                        !f.http.api_keys_file.empty() || !f.http.tls_certificate.empty());
  std::unique_ptr<AssetFolder> page;
  Api api;
  // What needs root comes first, and what others wrote is read without it.
  VT_TRY(auto http, HttpServer::create(f.http, api_service(api)));
  VT_RETURN_IF_ERROR(f.confinement.drop());
  if (f.no_ui) api.page = {};
  if (!f.ui_dir.empty()) {
    VT_TRY(page, AssetFolder::load(f.ui_dir));
    api.page = page->assets();
  }
  VT_TRY(auto file, f.model.open());
  VT_TRY(auto tokenizer, load_tokenizer(*file));
  VT_TRY(auto chat, f.chat.load(*file, tokenizer.get()));
  api.tokenizer = tokenizer.get();
  api.chat = chat.get();
  api.version = VITRINE_VERSION;
  api.model_name = f.model_name.empty() ? default_name(f.model.path) : f.model_name;
  api.stream_backlog = f.stream_backlog;
  api.share_cache = f.share_cache;
  api.lab = !f.no_lab;
  if (f.share_cache && !f.http.api_keys_file.empty())
    LogLine(LogLevel::kWarn, "keys share the cache")
        .field("gives_away", std::string_view("a key can find out what others sent: their prompts "
                                              "by what comes from the cache, their schemas by how "
                                              "long compiling takes"));
  if (f.default_timeout > 0)
    api.default_timeout =
        std::chrono::milliseconds(static_cast<std::int64_t>(f.default_timeout * 1000));
  api.started_unix = std::time(nullptr);
  api.texts.configure(record_mode_of(f), static_cast<std::int64_t>(f.record_mib) << 20);
  VT_TRY(api.defaults, f.sampling.resolve(file->generation(), tokenizer.get()));
  VT_TRY(api.pooling, pooling_flag(f.pooling, *file));
  api.http_counts = [&http] { return http->counts(); };
  std::unique_ptr<Engine> engine;
  // Answers come before the model is there: that it lives, and how far loading is. Goes first:
  // connections hold streams of the engine.
  Running running(signals, http);
  auto watch = [&api](std::int64_t bytes, std::int64_t total) {
    api.load_bytes = bytes, api.load_bytes_total = total;
  };
  VT_TRY(engine, f.engine.start(file, watch));
  VT_RETURN_IF_ERROR(f.confinement.enter(
      engine->info().backend, {f.http.api_keys_file, f.http.tls_certificate, f.http.tls_key}));
  api.attach(*engine);
  signals.serving(api, *file);
  if (running.ended()) return running.wait();
  print_ready(f, api, *http);
  return running.wait();
}

Action add(const CommandLine& line) {
  auto f = std::make_shared<Flags>();
  f->model.add_optional(line, "demo");
  add_http_flags(line, f->http);
  line.seconds("--header-timeout", f->http.header_timeout, "seconds for a request's head");
  line.seconds("--body-timeout", f->http.body_timeout, "seconds without a byte of the body");
  line.seconds("--idle-timeout", f->http.idle_timeout, "seconds between two requests");
  line.seconds("--write-timeout", f->http.write_timeout,
               "seconds without the client taking a byte");
  line.option("--model-name", f->model_name, "name of the model; default: its file's");
  line.option("--drain-seconds", f->drain_seconds, {0, 86400},
              "after SIGTERM or SIGINT, time for what runs to finish; a second signal ends the "
              "program at once")
      .show_default();
  line.option("--stream-backlog", f->stream_backlog, {1, 1 << 20},
              "tokens that a slow reader may leave unread before its sequence pauses")
      .show_default();
  line.option("--default-timeout", f->default_timeout, {0.0, kMaxTimeoutSeconds},
              "seconds for requests that set no timeout; 0: no limit");
  line.flag(
      "--share-cache", f->share_cache,
      "API keys share cached prompts and compiled schemas: faster where their prompts begin "
      "alike, but a key can find out what others sent, and with --spec what they were answered");
  auto no_ui = line.flag("--no-ui", f->no_ui, "serve the API only, without the web page");
  line.option("--ui-dir", f->ui_dir,
              "folder with a built page to serve instead of the program's own; read at start")
      .excludes(no_ui);
  line.flag("--no-lab", f->no_lab,
            "refuse experiments, which send requests of their own (/api/lab)");
  line.option("--record", f->record, {"asked", "all", "none"},
              "whose prompts and answers are kept in memory for a look at their tokens: those that "
              "asked (\"vitrine\": {\"record\": true}), all, none; default: asked, and none where "
              "there are no keys and the address is not loopback");
  line.option("--record-mib", f->record_mib, {0, 1 << 20},
              "memory for these; the oldest of the key that has the most go first")
      .show_default();
  add_pooling_flag(line, f->pooling);
  line.option("--log-level", f->log_level, {"debug", "info", "warn", "error"},
              "the least that is logged")
      .show_default();
  f->confinement.add(line);
  f->chat.add(line);
  f->sampling.add(line);
  f->engine.add_serving(line);
  f->engine.add(line);
  return [f] { return serve(*f); };
}

}  // namespace

extern const Command kCommand_serve;
const Command kCommand_serve{"serve", 15, "serve OpenAI's API over HTTP", add};

}  // namespace vitrine
