// Each test confines a child of its own, and looks at what the child can still do.
#include "base/sandbox.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

namespace vitrine {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

bool has_seccomp() {
  std::uint32_t action = 0x80000000;  // SECCOMP_RET_KILL_PROCESS
  return ::syscall(SYS_seccomp, 2 /* SECCOMP_GET_ACTION_AVAIL */, 0, &action) == 0;
}
// TSan has a thread of its own that takes no signal, so not every thread can be confined.
#if defined(__SANITIZE_THREAD__)
constexpr bool kAllThreadsTakeSignals = false;
#else
constexpr bool kAllThreadsTakeSignals = true;
#endif

bool has_landlock() { return ::syscall(SYS_landlock_create_ruleset, nullptr, 0, 1) > 0; }

// How a child that runs f ends: f's result (0 to 255), or minus the signal.
int in_child(const std::function<int()>& f) {
  pid_t child = ::fork();
  if (child == 0) ::_exit(f());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

constexpr int kNotConfined = 250;

// The same, in the sandbox.
int confined(const std::function<int()>& f, const std::vector<std::string>& reread = {}) {
  return in_child([&] {
    auto sandbox = enter_sandbox(reread);
    if (sandbox.ok()) return f();
    std::fprintf(stderr, "%s\n", sandbox.error().message.c_str());
    return kNotConfined;
  });
}

int error_of(long result) { return result < 0 ? errno : 0; }
int open_error(const char* path, int flags) { return error_of(::open(path, flags, 0600)); }

class SandboxTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_seccomp()) GTEST_SKIP() << "this kernel has no seccomp filters";
    if (!kAllThreadsTakeSignals) GTEST_SKIP() << "TSan's own thread cannot be confined";
    std::string pattern = (fs::temp_directory_path() / "sandbox-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    write("keys", "old");
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }
  std::string path(const char* name) const { return (folder_ / name).string(); }
  void write(const char* name, const char* text) const { std::ofstream(path(name)) << text; }

  fs::path folder_;
};

TEST_F(SandboxTest, WhatOnlyAnAttackDoesEndsTheProcess) {
  auto killed = [](const char* name, const std::function<long()>& call) {
    EXPECT_EQ(confined([&] { return error_of(call()); }), -SIGSYS) << name;
  };
  char word[] = "true";
  char* arguments[] = {word, nullptr};
  killed("execve", [&] { return ::execve("/bin/true", arguments, nullptr); });
  killed("execveat",
         [&] { return ::syscall(SYS_execveat, AT_FDCWD, "/bin/true", arguments, nullptr, 0); });
  killed("fork", [] { return ::syscall(SYS_fork); });
  killed("clone", [] { return ::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, 0); });
  killed("ptrace", [] { return ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr); });
  killed("process_vm_readv",
         [] { return ::process_vm_readv(::getppid(), nullptr, 0, nullptr, 0, 0); });
  killed("socket", [] { return ::socket(AF_INET, SOCK_STREAM, 0); });
  killed("unix socket", [] { return ::socket(AF_UNIX, SOCK_STREAM, 0); });
  killed("unshare", [] { return ::syscall(SYS_unshare, 0x10000000); });
  killed("bpf", [] { return ::syscall(SYS_bpf, 0, nullptr, 0); });
  killed("io_uring_setup", [] { return ::syscall(SYS_io_uring_setup, 1, nullptr); });
  killed("a number of x32", [] { return ::syscall(0x40000000 | SYS_getpid); });
}

TEST_F(SandboxTest, CallsOfThe32BitArchitectureEndTheProcess) {
  auto call = [] {
    long number = 20;  // getpid there, and writev here
    asm volatile("int $0x80" : "+a"(number) : : "memory");
    return number > 0 ? 0 : 1;
  };
  if (in_child(call) != 0) GTEST_SKIP() << "this kernel has no such calls";
  EXPECT_EQ(confined(call), -SIGSYS);
}

// A socket from before, as an attacker would look for one.
TEST_F(SandboxTest, DoesNotConnect) {
  int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(9);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* address = reinterpret_cast<sockaddr*>(&to);
  EXPECT_EQ(confined([&] { return error_of(::connect(fd, address, sizeof(to))); }), -SIGSYS);
  EXPECT_EQ(confined([&] { return error_of(::bind(fd, address, sizeof(to))); }), -SIGSYS);
  ::close(fd);
}

TEST_F(SandboxTest, ChangesNoFile) {
  std::string old = path("keys"), made = path("made");
  auto refused = [&](const char* name, const std::function<long()>& call) {
    EXPECT_EQ(confined([&] { return error_of(call()); }, {old}), EPERM) << name;
  };
  refused("write", [&] { return ::open(old.c_str(), O_WRONLY); });
  refused("append", [&] { return ::open(old.c_str(), O_RDWR | O_APPEND); });
  refused("create", [&] { return ::open(made.c_str(), O_CREAT | O_RDONLY, 0600); });
  refused("truncate while opening", [&] { return ::open(old.c_str(), O_RDONLY | O_TRUNC); });
  refused("unnamed", [&] { return ::open(folder_.c_str(), O_TMPFILE | O_RDWR, 0600); });
  refused("truncate", [&] { return ::truncate(old.c_str(), 0); });
  refused("unlink", [&] { return ::unlink(old.c_str()); });
  refused("rename", [&] { return ::rename(old.c_str(), made.c_str()); });
  refused("link", [&] { return ::link(old.c_str(), made.c_str()); });
  refused("symlink", [&] { return ::symlink(old.c_str(), made.c_str()); });
  refused("mkdir", [&] { return ::mkdir(made.c_str(), 0700); });
  refused("mkfifo", [&] { return ::mkfifo(made.c_str(), 0700); });
  refused("chmod", [&] { return ::chmod(old.c_str(), 0777); });
  refused("memfd", [&] { return ::syscall(SYS_memfd_create, "x", 0); });
  EXPECT_EQ(fs::file_size(old), 3U);
}

TEST_F(SandboxTest, OpensNothingWithoutFilesToReadAgain) {
  EXPECT_EQ(confined([] { return open_error("/etc/passwd", O_RDONLY); }), EPERM);
  EXPECT_EQ(confined([] { return open_error("/proc/self/mem", O_RDONLY); }), EPERM);
  EXPECT_EQ(confined([&] { return open_error(path("keys").c_str(), O_RDONLY); }), EPERM);
}

TEST_F(SandboxTest, ReadsOnlyTheFoldersOfFilesToReadAgain) {
  if (!has_landlock()) GTEST_SKIP() << "this kernel has no landlock";
  std::string keys = path("keys");
  auto error = [&](const char* file) {
    return confined([&] { return open_error(file, O_RDONLY); }, {keys});
  };
  EXPECT_EQ(error(keys.c_str()), 0);
  EXPECT_EQ(error("/etc/passwd"), EACCES);
  EXPECT_EQ(error("/etc"), EACCES);
  EXPECT_EQ(error("/proc/self/maps"), EACCES);
  EXPECT_EQ(error((folder_ / ".." / ".." / "etc" / "passwd").c_str()), EACCES);
}

// As certificates are renewed: a file takes the name of another, or a link moves on.
TEST_F(SandboxTest, ReadsWhatReplacedAFile) {
  fs::create_directory(folder_ / "archive");
  fs::create_directory(folder_ / "live");
  write("archive/1.pem", "one");
  fs::create_symlink("../archive/1.pem", folder_ / "live" / "cert.pem");
  int entered[2], replaced[2];
  ASSERT_EQ(::pipe(entered), 0);
  ASSERT_EQ(::pipe(replaced), 0);
  auto child = std::thread([&] {
    // Reads both once they were replaced.
    auto read_new = [&] {
      char byte = 0;
      if (::write(entered[1], "x", 1) != 1 || ::read(replaced[0], &byte, 1) != 1) return 1;
      std::string text;
      for (const char* name : {"keys", "live/cert.pem"}) {
        std::ifstream in(path(name));
        text += std::string(std::istreambuf_iterator<char>(in), {}) + " ";
      }
      return text == "new two " ? 0 : 2;
    };
    EXPECT_EQ(confined(read_new, {path("keys"), path("live/cert.pem")}), 0);
    ::close(entered[1]);
  });
  char byte = 0;
  EXPECT_EQ(::read(entered[0], &byte, 1), 1);
  write("next", "new");
  fs::rename(path("next"), path("keys"));
  write("archive/2.pem", "two");
  fs::create_symlink("../archive/2.pem", folder_ / "live" / "next");
  fs::rename(folder_ / "live" / "next", folder_ / "live" / "cert.pem");
  EXPECT_EQ(::write(replaced[1], "x", 1), 1);
  child.join();
  for (int fd : {entered[0], replaced[0], replaced[1]}) ::close(fd);
}

TEST_F(SandboxTest, MemoryNeverBecomesExecutable) {
  EXPECT_EQ(confined([] {
              void* data = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
              return data == MAP_FAILED ? errno : 0;
            }),
            EPERM);
  EXPECT_EQ(confined([] {
              void* data =
                  ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
              if (data == MAP_FAILED) return 1;
              return error_of(::mprotect(data, 4096, PROT_READ | PROT_EXEC));
            }),
            EPERM);
}

TEST_F(SandboxTest, SignalsNobodyElse) {
  EXPECT_EQ(confined([] { return error_of(::kill(::getppid(), 0)); }), EPERM);
  EXPECT_EQ(confined([] { return error_of(::kill(-1, 0)); }), EPERM);
  EXPECT_EQ(confined([]() -> int { ::abort(); }), -SIGABRT);
}

TEST_F(SandboxTest, LeavesNoCoreAndNoLookIntoItsMemory) {
  EXPECT_EQ(confined([] {
              rlimit limit{1, 1};
              if (::getrlimit(RLIMIT_CORE, &limit) != 0 || limit.rlim_max != 0) return 1;
              return ::prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0 ? 0 : 2;
            }),
            0);
}

TEST_F(SandboxTest, UnknownAndUnlistedCallsFail) {
  EXPECT_EQ(confined([] { return error_of(::syscall(100000)); }), ENOSYS);
  EXPECT_EQ(confined([] { return error_of(::syscall(SYS_sethostname, "x", 1)); }), EPERM);
  EXPECT_EQ(confined([] { return error_of(::setuid(0)); }), EPERM);
  EXPECT_EQ(confined([] { return error_of(::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)); }), EPERM);
}

TEST_F(SandboxTest, ThreadsFromBeforeAreConfinedToo) {
  std::string keys = path("keys");
  int expected = has_landlock() ? EACCES : 0;
  EXPECT_EQ(in_child([&] {
              constexpr int kThreads = 20;
              std::atomic<bool> entered{false}, busy{true};
              std::atomic<int> free{0};
              auto look = [&] {
                if (open_error("/etc/passwd", O_RDONLY) != expected ||
                    open_error("/etc/passwd", O_WRONLY) != EPERM)
                  ++free;
              };
              std::vector<std::thread> before;
              for (int i = 0; i < kThreads; ++i)
                before.emplace_back([&, i] {
                  // Some wait, some compute.
                  while (i % 2 == 0 && !entered) busy = !busy;
                  entered.wait(false);
                  look();
                });
              // Threads come and go meanwhile.
              std::atomic<bool> stop{false};
              std::thread parent([&] {
                while (!stop) std::thread([] {}).join();
                look();
              });
              auto sandbox = enter_sandbox({keys});
              if (!sandbox.ok()) {
                std::fprintf(stderr, "%s\n", sandbox.error().message.c_str());
                return kNotConfined;
              }
              stop = entered = true;
              entered.notify_all();
              for (auto& thread : before) thread.join();
              parent.join();
              std::thread(look).join();
              return free.load();
            }),
            0);
}

// /proc is read from outside, since the child cannot.
TEST_F(SandboxTest, NoThreadKeepsCapabilities) {
  int ready[2], leave[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(leave), 0);
  pid_t child = ::fork();
  if (child == 0) {
    std::thread other([&] {
      char byte = 0;
      ::_exit(::read(leave[0], &byte, 1) == 1 ? 0 : 1);
    });
    bool ok = enter_sandbox({}).ok();
    if (::write(ready[1], ok ? "y" : "n", 1) != 1) ::_exit(1);
    other.join();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  int threads = 0;
  for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(child) + "/task")) {
    ++threads;
    std::ifstream in(entry.path() / "status");
    std::string text(std::istreambuf_iterator<char>(in), {});
    for (const char* line :
         {"CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000",
          "CapAmb:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"})
      EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_EQ(threads, 2);
  EXPECT_EQ(::write(leave[1], "x", 1), 1);
  ::waitpid(child, nullptr, 0);
  for (int fd : {ready[0], ready[1], leave[0], leave[1]}) ::close(fd);
}

TEST_F(SandboxTest, SaysWhatCannotBeHad) {
  auto refused = [](const std::vector<std::string>& reread, const char* part) {
    EXPECT_EQ(in_child([&] {
                auto sandbox = enter_sandbox(reread);
                if (sandbox.ok()) return 1;
                return sandbox.error().message.find(part) == std::string::npos ? 2 : 0;
              }),
              0)
        << part;
  };
  refused({path("none")}, "/none");
  refused({"/proc"}, "folder /");
  // A thread that cannot be reached. (This takes as long as it is waited for.)
  EXPECT_EQ(in_child([] {
              sigset_t all;
              sigfillset(&all);
              ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
              std::thread([] { ::pause(); }).detach();
              ::pthread_sigmask(SIG_UNBLOCK, &all, nullptr);
              auto sandbox = enter_sandbox({});
              if (sandbox.ok()) return 1;
              return sandbox.error().message.find("takes no signal") == std::string::npos ? 2 : 0;
            }),
            0);
}

// What `f` finds as the user nobody; as root only.
int as_nobody(const std::function<int()>& f) {
  return in_child([&] {
    auto dropped = drop_privileges("nobody");
    if (dropped.ok()) return f();
    std::fprintf(stderr, "%s\n", dropped.error().message.c_str());
    return kNotConfined;
  });
}

TEST(DropPrivileges, BecomesTheUserInAllThreads) {
  const passwd* nobody = ::getpwnam("nobody");
  if (::geteuid() != 0 || nobody == nullptr) GTEST_SKIP() << "needs root and the user nobody";
  uid_t uid = nobody->pw_uid;
  gid_t gid = nobody->pw_gid;
  EXPECT_EQ(in_child([&] {
              std::atomic<bool> dropped{false};
              std::atomic<int> found{0};
              auto look = [&] {
                uid_t u[3];
                gid_t g[3], groups[64];
                if (::getresuid(&u[0], &u[1], &u[2]) != 0 || ::getresgid(&g[0], &g[1], &g[2]) != 0)
                  found = 1;
                for (int i = 0; i < 3; ++i)
                  if (u[i] != uid || g[i] != gid) found = 2;
                int n = ::getgroups(64, groups);
                for (int i = 0; i < n; ++i)
                  if (groups[i] == 0) found = 3;
                if (::syscall(SYS_setuid, 0) == 0) found = 4;
              };
              std::thread other([&] {
                dropped.wait(false);
                look();
              });
              if (!drop_privileges("nobody").ok()) return kNotConfined;
              look();
              dropped = true;
              dropped.notify_all();
              other.join();
              return found.load();
            }),
            0);
}

TEST(DropPrivileges, AndTheSandboxAfterwards) {
  if (::geteuid() != 0 || !has_seccomp()) GTEST_SKIP() << "needs root and seccomp filters";
  if (!kAllThreadsTakeSignals) GTEST_SKIP() << "TSan's own thread cannot be confined";
  EXPECT_EQ(as_nobody([] { return enter_sandbox({}).ok() ? open_error("/etc/passwd", 0) : 1; }),
            EPERM);
}

TEST(DropPrivileges, Refuses) {
  auto message = [](const char* user) {
    auto dropped = drop_privileges(user);
    return dropped.ok() ? "" : dropped.error().message;
  };
  if (::geteuid() != 0) {
    EXPECT_THAT(message("nobody"), HasSubstr("only root may"));
    return;
  }
  EXPECT_THAT(message("no-such-user"), HasSubstr("'no-such-user': there is no such user"));
  EXPECT_THAT(message("root"), HasSubstr("that is root"));
  EXPECT_EQ(as_nobody([&] {
              return message("nobody").find("only root may") == std::string::npos ? 1 : 0;
            }),
            0);
}

}  // namespace
}  // namespace vitrine
