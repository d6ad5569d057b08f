#include "base/syscall_filter.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <vector>

namespace vitrine {
namespace {

constexpr std::uint32_t kAllow = SECCOMP_RET_ALLOW, kKill = SECCOMP_RET_KILL_PROCESS;
constexpr std::uint32_t kDeny = SECCOMP_RET_ERRNO | EPERM;
// For calls that the C library tries first and can do without.
constexpr std::uint32_t kAbsent = SECCOMP_RET_ERRNO | ENOSYS;
constexpr std::uint32_t kX32 = 0x40000000;
// The first number that had no call when this list was made.
constexpr std::uint32_t kUnknown = 450;

// A program of the kernel's packet filter over the number and arguments of a call. Only the low halves
// of arguments are looked at: those that are tested are 32 bits wide or hold flags of the low half.
class Program {
 public:
  Program() {
    load(offsetof(seccomp_data, arch));
    jump(BPF_JEQ, AUDIT_ARCH_X86_64, 1, 0);
    give(kKill);
    load(offsetof(seccomp_data, nr));
    jump(BPF_JGE, kX32, 0, 1);
    give(kKill);
    jump(BPF_JGE, kUnknown, 0, 1);
    give(kAbsent);
  }

  void all(std::initializer_list<int> calls, std::uint32_t action) {
    for (int call : calls) {
      jump(BPF_JEQ, number(call), 0, 1);
      give(action);
    }
  }
  // Allows `call` when its argument has any of the bits; `otherwise` if it has none.
  void with(int call, int argument, std::uint32_t bits, std::uint32_t otherwise) {
    test(call, argument, bits, kAllow, otherwise);
  }
  void without(int call, int argument, std::uint32_t bits) {
    test(call, argument, bits, kDeny, kAllow);
  }
  // Allows `call` when its argument is one of the values.
  void among(int call, int argument, std::initializer_list<std::uint32_t> values) {
    jump(BPF_JEQ, number(call), 0, 2 + 2 * values.size());
    load_argument(argument);
    for (std::uint32_t value : values) {
      jump(BPF_JEQ, value, 0, 1);
      give(kAllow);
    }
    give(kDeny);
  }
  void give(std::uint32_t action) { add(BPF_RET | BPF_K, action); }

  std::vector<sock_filter> code;

 private:
  static std::uint32_t number(int call) { return static_cast<std::uint32_t>(call); }
  void add(int operation, std::uint32_t value, std::size_t yes = 0, std::size_t no = 0) {
    code.push_back({static_cast<std::uint16_t>(operation), static_cast<std::uint8_t>(yes),
                    static_cast<std::uint8_t>(no), value});
  }
  void load(std::size_t offset) {
    add(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
  }
  void load_argument(int i) {
    load(offsetof(seccomp_data, args) + static_cast<std::size_t>(i) * sizeof(std::uint64_t));
  }
  void jump(int comparison, std::uint32_t value, std::size_t yes, std::size_t no) {
    add(BPF_JMP | comparison | BPF_K, value, yes, no);
  }
  void test(int call, int argument, std::uint32_t bits, std::uint32_t any, std::uint32_t none) {
    jump(BPF_JEQ, number(call), 0, 4);
    load_argument(argument);
    jump(BPF_JSET, bits, 0, 1);
    give(any);
    give(none);
  }
};

Program make_program(bool open_files) {
  Program p;
  // What a server does all day comes first.
  p.all({SYS_futex,           SYS_read,
         SYS_write,           SYS_epoll_wait,
         SYS_epoll_ctl,       SYS_recvfrom,
         SYS_sendto,          SYS_recvmsg,
         SYS_sendmsg,         SYS_readv,
         SYS_writev,          SYS_accept,
         SYS_accept4,         SYS_close,
         SYS_shutdown,        SYS_getsockopt,
         SYS_setsockopt,      SYS_getsockname,
         SYS_getpeername,     SYS_poll,
         SYS_ppoll,           SYS_select,
         SYS_pselect6,        SYS_epoll_pwait,
         SYS_epoll_pwait2,    SYS_epoll_create1,
         SYS_eventfd2,        SYS_timerfd_create,
         SYS_timerfd_settime, SYS_timerfd_gettime,
         SYS_signalfd4,       SYS_pipe2},
        kAllow);
  // Memory, threads, signals.
  p.all({SYS_munmap,
         SYS_mremap,
         SYS_madvise,
         SYS_brk,
         SYS_mincore,
         SYS_membarrier,
         SYS_exit,
         SYS_exit_group,
         SYS_gettid,
         SYS_getpid,
         SYS_getppid,
         SYS_set_tid_address,
         SYS_set_robust_list,
         SYS_rseq,
         SYS_sched_yield,
         SYS_sched_getaffinity,
         SYS_getcpu,
         SYS_getpriority,
         SYS_setpriority,
         SYS_rt_sigaction,
         SYS_rt_sigprocmask,
         SYS_rt_sigreturn,
         SYS_rt_sigtimedwait,
         SYS_rt_sigsuspend,
         SYS_rt_sigpending,
         SYS_sigaltstack,
         SYS_restart_syscall,
         SYS_pause},
        kAllow);
  // Questions, clocks, random numbers. Paths may be asked about, which tells whether a file changed.
  p.all({SYS_fstat,     SYS_newfstatat,   SYS_stat,          SYS_lstat,        SYS_statx,
         SYS_lseek,     SYS_pread64,      SYS_access,        SYS_faccessat,    SYS_faccessat2,
         SYS_readlink,  SYS_readlinkat,   SYS_getcwd,        SYS_getdents64,   SYS_getuid,
         SYS_geteuid,   SYS_getgid,       SYS_getegid,       SYS_uname,        SYS_sysinfo,
         SYS_getrusage, SYS_times,        SYS_clock_gettime, SYS_clock_getres, SYS_clock_nanosleep,
         SYS_nanosleep, SYS_gettimeofday, SYS_time,          SYS_getrandom},
        kAllow);
  p.without(SYS_mmap, 2, PROT_EXEC);
  p.without(SYS_mprotect, 2, PROT_EXEC);
  p.with(SYS_clone, 0, CLONE_THREAD, kKill);
  p.all({SYS_clone3}, kAbsent);  // its flags are out of reach; the C library falls back to clone
  p.among(SYS_ioctl, 1, {FIONBIO, FIONREAD, TCGETS});
  p.among(SYS_fcntl, 1, {F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC});
  p.among(SYS_prctl, 0, {PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE});
  p.among(SYS_prlimit64, 0, {0});  // its own, which without capabilities only shrink
  auto self = static_cast<std::uint32_t>(::getpid());
  p.among(SYS_tgkill, 0, {self});
  p.among(SYS_kill, 0, {self});
  if (open_files) {
    constexpr std::uint32_t kWriting = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC;
    p.without(SYS_openat, 2, kWriting);
    p.without(SYS_open, 1, kWriting);
  }
  p.all({SYS_execve,
         SYS_execveat,
         SYS_fork,
         SYS_vfork,
         SYS_ptrace,
         SYS_process_vm_readv,
         SYS_process_vm_writev,
         SYS_pidfd_getfd,
         SYS_socket,
         SYS_socketpair,
         SYS_connect,
         SYS_bind,
         SYS_listen,
         SYS_io_uring_setup,
         SYS_bpf,
         SYS_perf_event_open,
         SYS_userfaultfd,
         SYS_mount,
         SYS_umount2,
         SYS_pivot_root,
         SYS_chroot,
         SYS_unshare,
         SYS_setns,
         SYS_open_by_handle_at,
         SYS_init_module,
         SYS_finit_module,
         SYS_delete_module,
         SYS_kexec_load,
         SYS_kexec_file_load,
         SYS_keyctl,
         SYS_add_key,
         SYS_request_key},
        kKill);
  p.give(kDeny);
  return p;
}

}  // namespace

Status install_syscall_filter(bool open_files) {
  Program program = make_program(open_files);
  sock_fprog list{static_cast<unsigned short>(program.code.size()), program.code.data()};
  // Without SPEC_ALLOW older kernels turn off speculation past stores, which is meant for programs
  // that run foreign code and costs kernels some of their speed.
  long failed = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                          SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW, &list);
  if (failed < 0)
    return make_error(ErrorCode::kUnavailable, "sandbox: no seccomp filter to be had: {}",
                      std::strerror(errno));
  if (failed > 0)
    return make_error(ErrorCode::kUnavailable, "sandbox: thread {} has a seccomp filter of its own",
                      failed);
  return Ok{};
}

}  // namespace vitrine
