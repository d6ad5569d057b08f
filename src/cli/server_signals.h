// What a server does on signals, and what it watches while it serves.
//
// While loading, SIGTERM and SIGINT end the process as they end any other. While serving, the first
// one means: no new work, what runs may finish within the time given, then it is cancelled, and
// kLastWords later the process is gone, whatever still runs (exit code 1; else run() returns). A
// second one ends the process at once (1). SIGHUP reads API keys and the certificate again; where there
// are none it ends the process, as it does when a terminal closes.
#pragma once

#include <csignal>

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

namespace vitrine {

struct Api;
class HttpServer;
class ModelFile;

class ServerSignals {
 public:
  // Blocks the signals for this thread and those it starts, and waits for them on one of its own.
  // `reloads`: there is something that SIGHUP can read again.
  ServerSignals(std::chrono::seconds drain, bool reloads);
  ~ServerSignals();

  // From now on SIGHUP reloads.
  void listening(HttpServer& http);
  // From now on SIGTERM drains; the files of the model are watched.
  void serving(Api& api, const ModelFile& file);
  // Nothing of the above is touched any more. The limit on the time to end stays.
  void release();

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  void on_stop(int signal);
  void watch_drain();
  void watch_files();

  const std::chrono::seconds drain_;
  sigset_t signals_;
  std::mutex mutex_;
  // Guarded by mutex_.
  HttpServer* http_ = nullptr;
  Api* api_ = nullptr;
  const ModelFile* file_ = nullptr;
  bool loading_ = true, draining_ = false;
  Clock::time_point deadline_, next_look_;
  std::map<std::string, std::string> changes_;  // by path, as logged
  std::set<std::string> overwritten_;           // names of files; what was served is lost for good

  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace vitrine
