// A server as a child process, for the duration of a measurement.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace vitrine::load {

class ServerProcess {
 public:
  // Runs `command` and waits until it prints "vitrine is ready: http://HOST:PORT". The error holds
  // the end of what it wrote to stderr.
  static Result<std::unique_ptr<ServerProcess>> start(
      const std::vector<std::string>& command,
      std::chrono::seconds patience = std::chrono::seconds(600));
  // Stops it if stop() was not called.
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  const std::string& url() const { return url_; }
  pid_t pid() const { return pid_; }
  // SIGTERM; SIGKILL when it has not ended after `patience`. An error unless it ended with code 0.
  Status stop(std::chrono::seconds patience = std::chrono::seconds(40));

 private:
  ServerProcess() = default;
  Status wait_ready(std::chrono::seconds patience);
  std::string log_tail() const;

  pid_t pid_ = -1;
  int out_ = -1;  // its stdout
  int log_ = -1;  // its stderr, a file without a name
  std::string url_, name_;
};

}  // namespace vitrine::load
