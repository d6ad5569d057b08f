#include "base/sandbox.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <pwd.h>
#include <semaphore.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <set>

#include "base/syscall_filter.h"

namespace vitrine {
namespace {

namespace fs = std::filesystem;

Error refused(const char* what, int error) {
  return make_error(ErrorCode::kUnavailable, "sandbox: {}: {}", what, std::strerror(error));
}

// The folders of these files and of the files that they are links to.
Result<std::vector<std::string>> folders_of(const std::vector<std::string>& files) {
  std::set<std::string> folders;
  for (const std::string& file : files) {
    std::error_code error, unused;
    fs::path target = fs::canonical(file, error);
    if (error) return make_error(ErrorCode::kNotFound, "sandbox: {}: {}", file, error.message());
    fs::path named = fs::canonical(fs::absolute(file, unused).parent_path(), unused);
    for (const fs::path& folder : {target.parent_path(), named}) {
      if (folder == folder.root_path())
        return make_error(ErrorCode::kInvalid,
                          "sandbox: {} lies in the folder /, so that every file would have to stay "
                          "readable; a file that is read again needs a folder of its own",
                          file);
      folders.insert(folder.string());
    }
  }
  return std::vector<std::string>(folders.begin(), folders.end());
}

// As of ABI 5; the headers may be older. The bits of files that an ABI knows are the lowest ones.
struct RulesetAttributes {
  std::uint64_t files, net;
};
constexpr std::uint64_t kBindAndConnectTcp = 3;
constexpr std::uint64_t file_rights(int abi) {
  int bits = abi >= 5 ? 16 : abi >= 3 ? 15 : abi == 2 ? 14 : 13;
  return (std::uint64_t{1} << bits) - 1;
}

class Descriptor {
 public:
  explicit Descriptor(long fd) : fd_(static_cast<int>(fd)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

int landlock_abi() {
  long abi = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return abi < 0 ? 0 : static_cast<int>(abi);
}

int make_ruleset(int abi) {
  RulesetAttributes attributes{file_rights(abi), abi >= 4 ? kBindAndConnectTcp : 0};
  return static_cast<int>(
      ::syscall(SYS_landlock_create_ruleset, &attributes, sizeof(attributes), 0));
}

Status allow_reading(int ruleset, const std::string& folder) {
  Descriptor fd(::open(folder.c_str(), O_PATH | O_CLOEXEC | O_DIRECTORY));
  landlock_path_beneath_attr rule{LANDLOCK_ACCESS_FS_READ_FILE, fd.get()};
  if (fd.get() < 0 ||
      ::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0)
    return refused(folder.c_str(), errno);
  return Ok{};
}

// Landlock and capabilities belong to threads, and only a thread itself can give up its own. So each
// gets a signal, whose handler does it; setuid of the C library works the same way.
constexpr int kPatience = 50;  // tenths of a second for a thread to take the signal
constinit std::atomic<int> ruleset_to_enter{-1}, outcome{0};
sem_t taken;

// 0 or an errno. Makes only system calls, as a handler must.
int confine_this_thread() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  int ruleset = ruleset_to_enter;
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  if (ruleset >= 0 && ::syscall(SYS_landlock_restrict_self, ruleset, 0) != 0) return errno;
  if (::syscall(SYS_capset, &header, none) != 0) return errno;
  return 0;
}

void on_signal(int) {
  int saved = errno;
  outcome = confine_this_thread();
  ::sem_post(&taken);
  errno = saved;
}

int signal_thread(pid_t thread, int signal) {
  return ::syscall(SYS_tgkill, ::getpid(), thread, signal) == 0 ? 0 : errno;
}

Status confine_thread(pid_t thread) {
  if (signal_thread(thread, SIGRTMIN + 1) == ESRCH) return Ok{};
  for (int i = 0; i < kPatience; ++i) {
    timespec until{};
    ::clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 100'000'000;
    until.tv_sec += until.tv_nsec / 1'000'000'000;
    until.tv_nsec %= 1'000'000'000;
    if (::sem_clockwait(&taken, CLOCK_MONOTONIC, &until) == 0)
      return outcome == 0 ? Status(Ok{}) : refused("a thread cannot be confined", outcome);
    if (signal_thread(thread, 0) != ESRCH) continue;
    (void)::sem_trywait(&taken);  // it ended, maybe after it took the signal
    return Ok{};
  }
  return make_error(ErrorCode::kUnavailable, "sandbox: thread {} takes no signal", thread);
}

Result<std::vector<pid_t>> threads() {
  std::vector<pid_t> out;
  std::error_code error;
  fs::directory_iterator entries("/proc/self/task", error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    std::string name = entries->path().filename().string();
    pid_t thread = 0;
    std::from_chars(name.data(), name.data() + name.size(), thread);
    out.push_back(thread);
  }
  if (error)
    return make_error(ErrorCode::kUnavailable, "sandbox: /proc/self/task: {}", error.message());
  return out;
}

// A thread that was not confined may start others meanwhile, so the list is read until it has nobody
// new. Threads of confined threads are born confined.
Status confine_threads() {
  std::set<pid_t> seen{static_cast<pid_t>(::syscall(SYS_gettid))};
  for (std::size_t before = 0; before != seen.size();) {
    before = seen.size();
    VT_TRY(auto running, threads());
    for (pid_t thread : running)
      if (seen.insert(thread).second) VT_RETURN_IF_ERROR(confine_thread(thread));
  }
  // Last, because it could not read the list any more.
  if (int error = confine_this_thread()) return refused("this thread cannot be confined", error);
  return Ok{};
}

Status confine_threads(int ruleset) {
  struct sigaction action {
  }, before{};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  ruleset_to_enter = ruleset;
  ::sem_init(&taken, 0, 0);
  ::sigaction(SIGRTMIN + 1, &action, &before);
  Status status = confine_threads();
  // After a failure a late thread may still take the signal.
  if (status.ok()) ::sigaction(SIGRTMIN + 1, &before, nullptr);
  return status;
}

}  // namespace

Result<Sandbox> enter_sandbox(const std::vector<std::string>& reread) {
  Sandbox sandbox;
  VT_TRY(sandbox.readable, folders_of(reread));
  sandbox.landlock_abi = landlock_abi();
  Descriptor ruleset(sandbox.landlock_abi > 0 ? make_ruleset(sandbox.landlock_abi) : -1);
  if (sandbox.landlock_abi > 0) {
    if (ruleset.get() < 0) return refused("landlock", errno);
    for (const std::string& folder : sandbox.readable)
      VT_RETURN_IF_ERROR(allow_reading(ruleset.get(), folder));
  }
  VT_RETURN_IF_ERROR(confine_threads(ruleset.get()));
  // A pipe to a crash reporter ignores the limit; what cannot be dumped is given to none.
  rlimit none{0, 0};
  if (::setrlimit(RLIMIT_CORE, &none) != 0 || ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
    return refused("core dumps cannot be turned off", errno);
  VT_RETURN_IF_ERROR(install_syscall_filter(!reread.empty()));
  return sandbox;
}

Status drop_privileges(const std::string& user) {
  if (::geteuid() != 0)
    return make_error(ErrorCode::kInvalid,
                      "cannot become user '{}': only root may, and this is user id {}", user,
                      ::geteuid());
  errno = 0;
  const passwd* entry = ::getpwnam(user.c_str());
  if (entry == nullptr)
    return make_error(ErrorCode::kNotFound, "cannot become user '{}': {}", user,
                      errno == 0 ? "there is no such user" : std::strerror(errno));
  uid_t uid = entry->pw_uid;
  gid_t gid = entry->pw_gid;
  if (uid == 0)
    return make_error(ErrorCode::kInvalid, "cannot become user '{}': that is root", user);
  if (::initgroups(user.c_str(), gid) != 0 || ::setresgid(gid, gid, gid) != 0 ||
      ::setresuid(uid, uid, uid) != 0)
    return make_error(ErrorCode::kUnavailable, "cannot become user '{}': {}", user,
                      std::strerror(errno));
  if (::setuid(0) == 0)
    return make_error(ErrorCode::kUnavailable,
                      "cannot become user '{}': the way back to root stays open", user);
  return Ok{};
}

}  // namespace vitrine
