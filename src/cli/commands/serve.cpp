// vitrine serve: the HTTP server with OpenAI's API.
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <thread>

#include "base/log.h"
#include "cli/chat_flags.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "server/api.h"
#include "server/http/http.h"
#include "server/request/limits.h"

namespace vitrine {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kLastWords{5};  // for the answers that a shutdown cut short

struct Flags {
  ModelFlag model;
  EngineFlags engine;
  SamplingFlags sampling;
  ChatFlags chat;
  HttpOptions http;
  std::string model_name, log_level = "info", pooling;
  int drain_seconds = 30, stream_backlog = Api::kDefaultBacklog;
  double default_timeout = 0;
  bool isolate_keys = false;
};

void add_http_flags(const CommandLine& line, HttpOptions& http) {
  line.option("--host", http.host, "address to listen on").show_default();
  line.option("--port", http.port, "port to listen on; 0: any free one").show_default();
  line.option("--io-threads", http.io_threads, "threads for connections").show_default();
  line.option("--worker-threads", http.worker_threads, "threads for JSON and tokenizing")
      .show_default();
  line.option("--tls-cert", http.tls_certificate, "PEM file: serve HTTPS, with --tls-key");
  line.option("--tls-key", http.tls_key, "PEM file of the certificate's key");
  line.option("--api-keys", http.api_keys_file,
              "file of API keys, a line each: KEY [NAME [WEIGHT]]; all but /health needs one");
  line.option("--allow-host", http.allow_hosts,
              "name that clients may use for this server, beside loopback; may be repeated");
  line.option("--cors-origin", http.cors_origins,
              "web origin that may read answers; '*': any; may be repeated");
  line.option("--max-body-bytes", http.max_body_bytes, "largest request body").show_default();
  line.option("--max-bodies-bytes", http.max_bodies_bytes,
              "most bytes of the bodies of all requests in work")
      .show_default();
  line.option("--max-header-bytes", http.max_header_bytes, "largest request head").show_default();
  line.option("--max-headers", http.max_headers, "most header fields").show_default();
  line.option("--max-connections", http.max_connections, "most open connections").show_default();
}

Result<LogLevel> parse_log_level(const std::string& name) {
  if (name == "debug") return LogLevel::kDebug;
  if (name == "info") return LogLevel::kInfo;
  if (name == "warn") return LogLevel::kWarn;
  if (name == "error") return LogLevel::kError;
  return make_error(ErrorCode::kInvalid,
                    "--log-level: found '{}', allowed debug, info, warn, error", name);
}

std::string default_name(const std::string& model_path) {
  std::filesystem::path path(model_path);
  if (path.filename().empty()) path = path.parent_path();  // "folder/"
  bool gguf = path.extension() == ".gguf";
  return (gguf ? path.stem() : path.filename()).string();
}

// SIGTERM and SIGINT, for this thread and those it starts.
sigset_t block_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return set;
}

// Waits for signals on a thread of its own. The first: no new work, what runs may finish within
// the time given, then it is cancelled. The second ends the process.
class Shutdown {
 public:
  Shutdown(sigset_t signals, Api& api, HttpServer& http, std::chrono::seconds drain)
      : thread_([this, signals, &api, &http, drain] { run(signals, api, http, drain); }) {}
  ~Shutdown() {
    done_ = true;
    thread_.join();
  }

 private:
  void run(sigset_t signals, Api& api, HttpServer& http, std::chrono::seconds drain) {
    const timespec tick{0, 50'000'000};
    Clock::time_point deadline{};
    while (!done_) {
      bool signalled = sigtimedwait(&signals, nullptr, &tick) > 0;
      if (signalled && api.draining) _exit(1);
      if (signalled) {
        LogLine(LogLevel::kInfo, "draining").field("seconds", std::int64_t{drain.count()});
        deadline = Clock::now() + drain;
        api.draining = true;
        http.stop_accepting();
      }
      if (!api.draining) continue;
      auto over = Clock::now() - deadline;
      if (over > Clock::duration::zero()) api.live.cancel_all();
      if (over > kLastWords) http.stop();
    }
  }

  std::atomic<bool> done_{false};
  std::thread thread_;
};

Result<int> serve(const Flags& f) {
  VT_TRY(LogLevel level, parse_log_level(f.log_level));
  set_log_level(level);
  VT_TRY(auto file, f.model.open());
  VT_TRY(auto tokenizer, load_tokenizer(*file));
  VT_TRY(auto chat, f.chat.load(*file, tokenizer.get()));
  Api api;
  api.tokenizer = tokenizer.get();
  api.chat = chat.get();
  api.version = VITRINE_VERSION;
  api.model_name = f.model_name.empty() ? default_name(f.model.path) : f.model_name;
  api.stream_backlog = f.stream_backlog;
  api.isolate_keys = f.isolate_keys;
  if (f.default_timeout > 0)
    api.default_timeout =
        std::chrono::milliseconds(static_cast<std::int64_t>(f.default_timeout * 1000));
  api.started_unix = std::time(nullptr);
  VT_TRY(api.defaults, f.sampling.resolve(file->generation()));
  VT_TRY(api.pooling, pooling_flag(f.pooling, *file));
  sigset_t signals = block_signals();
  // The port first: one that is taken is known before the model is loaded.
  VT_TRY(auto http, HttpServer::create(f.http, api_service(api)));
  api.http_counts = [&http] { return http->counts(); };
  VT_TRY(auto engine, f.engine.start(file));
  api.attach(*engine);
  {
    Shutdown shutdown(signals, api, *http, std::chrono::seconds(f.drain_seconds));
    fmt::print("vitrine is ready: {}://{}:{} (model {}, backend {})\n",
               f.http.tls_certificate.empty() ? "http" : "https", f.http.host, http->port(),
               api.model_name, engine->info().backend_description);
    if (f.http.api_keys_file.empty() && f.http.tls_certificate.empty())
      fmt::print(
          "try: curl http://{}:{}/v1/chat/completions -d '{{\"messages\": [{{\"role\": \"user\", "
          "\"content\": \"Tell me a story about a fox.\"}}]}}'\n",
          f.http.host, http->port());
    std::fflush(stdout);
    http->run();
  }
  // Connections may still hold streams of the engine; they go first.
  http.reset();
  return 0;
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
  line.option("--drain-seconds", f->drain_seconds,
              "after SIGTERM or SIGINT, time for what runs to finish; a second signal ends the "
              "program at once")
      .show_default()
      .range(0, 86400);
  line.option("--stream-backlog", f->stream_backlog,
              "tokens that a slow reader may leave unread before its sequence pauses")
      .show_default()
      .range(1, 1 << 20);
  line.option("--default-timeout", f->default_timeout,
              "seconds for requests that set no timeout; 0: no limit")
      .range(0.0, kMaxTimeoutSeconds);
  line.flag("--isolate-keys", f->isolate_keys,
            "API keys share no cached pages and see only their own requests");
  add_pooling_flag(line, f->pooling);
  line.option("--log-level", f->log_level, "debug, info, warn or error").show_default();
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
