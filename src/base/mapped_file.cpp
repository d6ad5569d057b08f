#include "base/mapped_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/chrono.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <mutex>
#include <new>

namespace vitrine {
namespace {

// The mapped files, for the handler of SIGBUS, which may take no lock. An entry is in use when its
// `end` is not zero. Tables are added as they are needed and never freed.
struct Place {
  std::atomic<std::uintptr_t> begin = 0, end = 0;
  std::array<char, 512> path = {};
};
struct Places {
  std::array<Place, 64> entries;
  std::atomic<Places*> next = nullptr;
};
constinit Places places;
constinit std::mutex places_mutex;

void say(const char* text) {
  [[maybe_unused]] auto written = ::write(STDERR_FILENO, text, std::strlen(text));
}

// A file was truncated while it was mapped. There is nothing to continue with: report and exit.
void on_bus_error(int signal, siginfo_t* info, void*) {
  auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (const Places* table = &places; table != nullptr; table = table->next)
    for (const Place& p : table->entries)
      if (at < p.end.load() && at >= p.begin.load()) {
        say("fatal: ");
        say(p.path.data());
        say(": the file was cut short, or its device failed, while it was in use\n");
        ::_exit(1);
      }
  ::signal(signal, SIG_DFL);
}

// With places_mutex. Null when there is no memory for another table.
Place* free_place() {
  for (Places* table = &places;; table = table->next) {
    for (Place& p : table->entries)
      if (p.end == 0) return &p;
    if (table->next == nullptr) table->next = new (std::nothrow) Places;
    if (table->next == nullptr) return nullptr;
  }
}

void enter(const std::string& path, const void* data, std::size_t size) {
  std::lock_guard lock(places_mutex);
  static const bool installed = [] {
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO;
    return ::sigaction(SIGBUS, &action, nullptr) == 0;
  }();
  Place* place = installed ? free_place() : nullptr;
  if (place == nullptr) return;
  std::size_t n = path.copy(place->path.data(), place->path.size() - 1);
  place->path[n] = '\0';
  auto begin = reinterpret_cast<std::uintptr_t>(data);
  place->begin = begin;
  place->end = begin + size;
}

void leave(const void* data) {
  std::lock_guard lock(places_mutex);
  auto begin = reinterpret_cast<std::uintptr_t>(data);
  for (Places* table = &places; table != nullptr; table = table->next)
    for (Place& p : table->entries)
      if (p.end != 0 && p.begin == begin) p.end = 0;
}

std::string describe(std::uint64_t bytes, std::int64_t seconds, std::int64_t nanoseconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  // Of a file anything can be its time.
  if (::gmtime_r(&time, &parts) == nullptr)
    return fmt::format("{} bytes of second {}.{:09}", bytes, seconds, nanoseconds);
  return fmt::format("{} bytes of {:%Y-%m-%dT%H:%M:%S}.{:09}Z", bytes, parts, nanoseconds);
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
  Identity identity{info.st_dev, info.st_ino, info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
  if (size == 0) {
    ::close(fd);
    return MappedFile(path, identity, nullptr, 0);
  }
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  int failure = errno;
  ::close(fd);
  if (data == MAP_FAILED)
    return make_error(ErrorCode::kUnavailable, "{}: cannot map {} bytes: {}", path, size,
                      std::strerror(failure));
  enter(path, data, size);
  return MappedFile(path, identity, static_cast<const std::byte*>(data), size);
}

std::optional<FileChange> MappedFile::change() const {
  struct stat now {};
  if (::stat(path_.c_str(), &now) != 0) {
    if (errno != ENOENT && errno != ENOTDIR) return std::nullopt;  // not to be known
    return FileChange{path_, true, "no file has this name any more"};
  }
  if (now.st_dev != identity_.device || now.st_ino != identity_.inode)
    return FileChange{path_, true, "another file has this name"};
  if (static_cast<std::size_t>(now.st_size) == size_ && now.st_mtim.tv_sec == identity_.seconds &&
      now.st_mtim.tv_nsec == identity_.nanoseconds)
    return std::nullopt;
  return FileChange{
      path_, false,
      fmt::format("had {}, has {}", describe(size_, identity_.seconds, identity_.nanoseconds),
                  describe(static_cast<std::uint64_t>(now.st_size), now.st_mtim.tv_sec,
                           now.st_mtim.tv_nsec))};
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      identity_(other.identity_),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(identity_, other.identity_);
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
