#include "base/mapped_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>

namespace vitrine {
namespace {

// The mapped files, for the handler of SIGBUS, which may take no lock. An entry is in use when its
// `end` is not zero. Files beyond the size of the table are mapped without an entry: a read past
// the end of one of those ends the process with a plain SIGBUS.
struct Place {
  std::atomic<std::uintptr_t> begin = 0, end = 0;
  std::array<char, 512> path = {};
};
constinit std::array<Place, 256> places;
constinit std::mutex places_mutex;

void say(const char* text) {
  [[maybe_unused]] auto written = ::write(STDERR_FILENO, text, std::strlen(text));
}

// A file was truncated while it was mapped. There is nothing to continue with: report and exit.
void on_bus_error(int signal, siginfo_t* info, void*) {
  auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (const Place& p : places)
    if (at < p.end.load() && at >= p.begin.load()) {
      say("fatal: ");
      say(p.path.data());
      say(": the file was cut short, or its device failed, while it was in use\n");
      ::_exit(1);
    }
  ::signal(signal, SIG_DFL);
}

void enter(const std::string& path, const void* data, std::size_t size) {
  std::lock_guard lock(places_mutex);
  static const bool installed = [] {
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO;
    return ::sigaction(SIGBUS, &action, nullptr) == 0;
  }();
  if (!installed) return;
  auto free = std::find_if(places.begin(), places.end(), [](auto& p) { return p.end == 0; });
  if (free == places.end()) return;
  std::size_t n = path.copy(free->path.data(), free->path.size() - 1);
  free->path[n] = '\0';
  auto begin = reinterpret_cast<std::uintptr_t>(data);
  free->begin = begin;
  free->end = begin + size;
}

void leave(const void* data) {
  std::lock_guard lock(places_mutex);
  auto begin = reinterpret_cast<std::uintptr_t>(data);
  for (Place& p : places)
    if (p.end != 0 && p.begin == begin) p.end = 0;
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  if (path.find('\0') != std::string::npos)
    return make_error(ErrorCode::kInvalid, "a file name with a NUL byte is not allowed");
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return make_error(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kUnavailable,
                      "{}: cannot open: {}", path, std::strerror(errno));
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    return make_error(ErrorCode::kInvalid, "{}: not a regular file", path);
  }
  auto size = static_cast<std::size_t>(info.st_size);
  if (size == 0) {
    ::close(fd);
    return MappedFile(path, nullptr, 0);
  }
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  int failure = errno;
  ::close(fd);
  if (data == MAP_FAILED)
    return make_error(ErrorCode::kUnavailable, "{}: cannot map {} bytes: {}", path, size,
                      std::strerror(failure));
  enter(path, data, size);
  return MappedFile(path, static_cast<const std::byte*>(data), size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  leave(data_);
  ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace vitrine
