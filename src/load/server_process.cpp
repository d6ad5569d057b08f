#include "load/server_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

namespace vitrine::load {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::string_view kReady = "vitrine is ready: ";
constexpr std::size_t kMaxOutput = 64 << 10;
constexpr off_t kLogTail = 2000;

// In the child, after fork: async-signal-safe calls only.
[[noreturn]] void become(char* const* argv, int out, int log, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(127);
  ::signal(SIGPIPE, SIG_DFL);
  int null = ::open("/dev/null", O_RDONLY);
  if (null < 0 || ::dup2(null, STDIN_FILENO) < 0 || ::dup2(out, STDOUT_FILENO) < 0 ||
      ::dup2(log, STDERR_FILENO) < 0)
    ::_exit(127);
  ::execv(argv[0], argv);
  ::_exit(127);
}

// The URL of the ready line, when `output` holds that line whole.
std::string ready_url(std::string_view output) {
  std::size_t at = output.find(kReady);
  if (at == std::string_view::npos) return "";
  std::string_view rest = output.substr(at + kReady.size());
  std::size_t end = rest.find_first_of(" \r\n");
  if (rest.find('\n') == std::string_view::npos) return "";
  return std::string(rest.substr(0, end));
}

}  // namespace

Result<std::unique_ptr<ServerProcess>> ServerProcess::start(const std::vector<std::string>& command,
                                                            std::chrono::seconds patience) {
  std::vector<std::string> words = command;
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::unique_ptr<ServerProcess> self(new ServerProcess());
  self->name_ = fmt::format("{}", fmt::join(command, " "));
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0)
    return make_error(ErrorCode::kUnavailable, "pipe: {}", std::strerror(errno));
  self->out_ = pipe[0];
  self->log_ = ::memfd_create("server log", MFD_CLOEXEC);
  pid_t parent = ::getpid();
  if (self->log_ >= 0) self->pid_ = ::fork();
  if (self->pid_ == 0) become(argv.data(), pipe[1], self->log_, parent);
  int error = errno;
  ::close(pipe[1]);
  if (self->pid_ < 0)
    return make_error(ErrorCode::kUnavailable, "cannot start {}: {}", self->name_,
                      std::strerror(error));
  VT_RETURN_IF_ERROR(self->wait_ready(patience));
  return self;
}

Status ServerProcess::wait_ready(std::chrono::seconds patience) {
  std::string output;
  bool late = false;
  auto until = Clock::now() + patience;
  while (output.size() < kMaxOutput) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    pollfd waiting{out_, POLLIN, 0};
    int ready = ::poll(&waiting, 1, static_cast<int>(std::max<std::int64_t>(0, left.count())));
    if (ready < 0 && errno == EINTR) continue;
    late = ready == 0;
    if (ready <= 0) break;
    char buffer[4096];
    ssize_t count = ::read(out_, buffer, sizeof buffer);
    if (count <= 0) break;
    output.append(buffer, static_cast<std::size_t>(count));
    url_ = ready_url(output);
    if (!url_.empty()) return Ok{};
  }
  return make_error(ErrorCode::kUnavailable, "{}: {}; its log ends:\n{}", name_,
                    late ? fmt::format("not ready after {} s", patience.count())
                         : std::string("ended without being ready"),
                    log_tail());
}

std::string ServerProcess::log_tail() const {
  off_t size = ::lseek(log_, 0, SEEK_END);
  off_t from = std::max<off_t>(0, size - kLogTail);
  std::string out(static_cast<std::size_t>(std::max<off_t>(0, size - from)), '\0');
  ssize_t count = ::pread(log_, out.data(), out.size(), from);
  out.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return out;
}

Status ServerProcess::stop(std::chrono::seconds patience) {
  if (pid_ <= 0) return Ok{};
  ::kill(pid_, SIGTERM);
  auto until = Clock::now() + patience;
  int status = 0;
  pid_t done = 0;
  while ((done = ::waitpid(pid_, &status, WNOHANG)) == 0 && Clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  if (done == 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, &status, 0);
  }
  pid_ = -1;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return Ok{};
  return make_error(ErrorCode::kUnavailable, "{}: ended by {} {}; its log ends:\n{}", name_,
                    WIFEXITED(status) ? "code" : "signal",
                    WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), log_tail());
}

ServerProcess::~ServerProcess() {
  (void)stop();
  if (out_ >= 0) ::close(out_);
  if (log_ >= 0) ::close(log_);
}

}  // namespace vitrine::load
