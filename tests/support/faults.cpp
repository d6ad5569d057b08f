#include "support/faults.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>

namespace vitrine {
namespace {

struct Plan {
  std::atomic<long> first{0}, last{0};  // calls that fail; 0: none
  std::atomic<long> calls{0}, failed{0};
};
constinit Plan plans[kFaults];
thread_local bool exempt = false;

bool due(Fault kind) {
  Plan& plan = plans[static_cast<int>(kind)];
  const long last = plan.last.load(std::memory_order_relaxed);
  if (last == 0 || exempt) return false;
  const long call = plan.calls.fetch_add(1, std::memory_order_relaxed) + 1;
  if (call < plan.first.load(std::memory_order_relaxed) || call > last) return false;
  plan.failed.fetch_add(1, std::memory_order_relaxed);
  return true;
}

template <typename F>
F* next(const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

// As the standard has it: the handler may find memory.
void* allocate(std::size_t size, std::size_t align) {
  bool fails = due(Fault::kAllocation);
  const std::size_t whole = (size + align - 1) / align * align;
  for (;;) {
    void* p = nullptr;
    if (!fails)
      p = align > alignof(std::max_align_t) ? std::aligned_alloc(align, whole) : std::malloc(size);
    if (p != nullptr) return p;
    fails = false;
    std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

// VITRINE_FAULTS=thread:3,write:10:5
[[maybe_unused]] const bool from_environment = [] {
  static constexpr const char* kNames[kFaults] = {"alloc", "thread", "mmap", "read",
                                                  "write", "accept", "clock"};
  const char* at = std::getenv("VITRINE_FAULTS");
  while (at != nullptr && *at != '\0') {
    char name[16] = {};
    long nth = 0, count = 1;
    if (std::sscanf(at, "%15[a-z]:%ld:%ld", name, &nth, &count) < 2) std::abort();
    for (int i = 0; i < kFaults; ++i)
      if (std::strcmp(name, kNames[i]) == 0) plan_fault(static_cast<Fault>(i), nth, count);
    at = std::strchr(at, ',');
    if (at != nullptr) ++at;
  }
  return true;
}();

}  // namespace

void plan_fault(Fault kind, long nth, long count) {
  Plan& plan = plans[static_cast<int>(kind)];
  plan.last = 0;
  plan.calls = plan.failed = 0;
  plan.first = nth;
  plan.last = nth + count - 1;
}

long end_fault(Fault kind) {
  Plan& plan = plans[static_cast<int>(kind)];
  plan.last = 0;
  return plan.failed;
}

FaultFree::FaultFree() { exempt = true; }
FaultFree::~FaultFree() { exempt = false; }

}  // namespace vitrine

using vitrine::due;
using vitrine::Fault;

void* operator new(std::size_t size) { return vitrine::allocate(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t align) {
  return vitrine::allocate(size, static_cast<std::size_t>(align));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return due(Fault::kAllocation) ? nullptr : std::malloc(size);
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

extern "C" {

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) {
  static auto* const real = vitrine::next<decltype(pthread_create)>("pthread_create");
  return due(Fault::kThread) ? EAGAIN : real(thread, attributes, start, argument);
}

void* mmap(void* at, size_t size, int protection, int flags, int file, off_t offset) noexcept {
  static auto* const real = vitrine::next<void*(void*, size_t, int, int, int, off_t)>("mmap");
  if (!due(Fault::kMap)) return real(at, size, protection, flags, file, offset);
  errno = ENOMEM;
  return MAP_FAILED;
}

ssize_t recv(int socket, void* data, size_t size, int flags) {
  static auto* const real = vitrine::next<ssize_t(int, void*, size_t, int)>("recv");
  if (!due(Fault::kRead)) return real(socket, data, size, flags);
  errno = ECONNRESET;
  return -1;
}

// By turns: a client that is gone, a full buffer. (Not a short write: it would mean that the buffer is
// full, and whoever waits for the kernel to say when it is not would wait for ever.)
ssize_t send(int socket, const void* data, size_t size, int flags) {
  static auto* const real = vitrine::next<ssize_t(int, const void*, size_t, int)>("send");
  static std::atomic<unsigned> turn{0};
  if (!due(Fault::kWrite)) return real(socket, data, size, flags);
  errno = turn.fetch_add(1) % 2 == 0 ? EPIPE : EAGAIN;
  return -1;
}

int clock_gettime(clockid_t clock, timespec* out) noexcept {
  static auto* const real = vitrine::next<int(clockid_t, timespec*)>("clock_gettime");
  static std::atomic<unsigned> turn{0};
  const int result = real(clock, out);
  constexpr time_t kYear = 365 * 86400;
  if (clock == CLOCK_REALTIME && due(Fault::kClock))
    out->tv_sec += turn.fetch_add(1) % 2 == 0 ? kYear : -kYear;
  return result;
}

int accept(int socket, sockaddr* address, socklen_t* length) {
  static auto* const real = vitrine::next<int(int, sockaddr*, socklen_t*)>("accept");
  if (!due(Fault::kAccept)) return real(socket, address, length);
  errno = EMFILE;
  return -1;
}

}  // extern "C"
