#include "cli/server_signals.h"

#include <pthread.h>
#include <unistd.h>

#include <exception>
#include <filesystem>

#include "base/log.h"
#include "formats/model_file.h"
#include "server/api.h"

namespace vitrine {
namespace {

constexpr timespec kTick{0, 50'000'000};
// After the time to drain: until the connections that are left are closed, and until the process
// ends without waiting for anything.
constexpr std::chrono::seconds kClose{2}, kLastWords{5};
constexpr std::chrono::seconds kLook{2};  // between two looks at the files

sigset_t set_of_signals(bool reloads) {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGTERM, SIGINT}) sigaddset(&set, signal);
  if (reloads) sigaddset(&set, SIGHUP);
  return set;
}

// As the signal would have, had it not been blocked. (The first process of a container has no
// default actions, hence the exit.)
[[noreturn]] void end_by(int signal, const sigset_t& blocked) {
  std::signal(signal, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &blocked, nullptr);
  std::raise(signal);
  _exit(128 + signal);
}

}  // namespace

ServerSignals::ServerSignals(std::chrono::seconds drain, bool reloads)
    : drain_(drain), signals_(set_of_signals(reloads)) {
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  thread_ = std::thread([this] { run(); });
}

ServerSignals::~ServerSignals() {
  done_ = true;
  thread_.join();
}

void ServerSignals::listening(HttpServer& http) {
  std::lock_guard lock(mutex_);
  http_ = &http;
}

void ServerSignals::serving(Api& api, const ModelFile& file) {
  std::lock_guard lock(mutex_);
  api_ = &api, file_ = &file;
  loading_ = false;
}

void ServerSignals::release() {
  std::lock_guard lock(mutex_);
  http_ = nullptr, api_ = nullptr, file_ = nullptr;
}

void ServerSignals::run() {
  while (!done_) {
    int signal = sigtimedwait(&signals_, nullptr, &kTick);
    std::lock_guard lock(mutex_);
    if (signal == SIGHUP && http_ != nullptr) http_->reload();
    if (signal == SIGTERM || signal == SIGINT) on_stop(signal);
    if (draining_)
      watch_drain();
    else
      try {
        watch_files();
      } catch (const std::exception&) {  // later, then
      }
  }
}

void ServerSignals::on_stop(int signal) {
  if (loading_) {
    LogLine(LogLevel::kInfo, "stopped while loading");
    end_by(signal, signals_);
  }
  if (draining_) _exit(1);
  LogLine(LogLevel::kInfo, "draining").field("seconds", std::int64_t{drain_.count()});
  draining_ = true;
  deadline_ = Clock::now() + drain_;
  if (api_ != nullptr) api_->draining = true;
  if (http_ != nullptr) http_->stop_accepting();
}

void ServerSignals::watch_drain() {
  auto over = Clock::now() - deadline_;
  if (over <= Clock::duration::zero()) return;
  if (api_ != nullptr) api_->live.cancel_all();
  if (over > kClose && http_ != nullptr) http_->stop();
  if (over <= kLastWords) return;
  LogLine(LogLevel::kError, "work did not end in time; leaving it");
  _exit(1);
}

void ServerSignals::watch_files() {
  if (file_ == nullptr || Clock::now() < next_look_) return;
  next_look_ = Clock::now() + kLook;
  std::map<std::string, std::string> now;
  for (const FileChange& change : file_->changes()) {
    if (!change.replaced) overwritten_.insert(std::filesystem::path(change.path).filename());
    now[change.path] = change.what;
    if (auto known = changes_.find(change.path);
        known != changes_.end() && known->second == change.what)
      continue;
    LogLine(change.replaced ? LogLevel::kInfo : LogLevel::kError,
            change.replaced ? "model file replaced; the old one is served until a restart"
                            : "model file overwritten while it is served; restart the server")
        .field("file", change.path)
        .field("what", change.what);
  }
  if (now == changes_) return;
  api_->changed_files.set(
      std::make_shared<std::vector<std::string>>(overwritten_.begin(), overwritten_.end()));
  changes_ = std::move(now);
}

}  // namespace vitrine
