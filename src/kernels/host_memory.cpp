#include "kernels/host_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <fstream>

namespace vitrine {

Result<Buffer> allocate_host(std::int64_t bytes) {
  auto size = static_cast<std::size_t>(bytes > 0 ? bytes : 1);
  void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED)
    return make_error(ErrorCode::kUnavailable, "cannot allocate {} bytes: {}", bytes,
                      std::strerror(errno));
  if (size >= (std::size_t{2} << 20)) ::madvise(data, size, MADV_HUGEPAGE);
  return Buffer(data, bytes, [size](void* p) {
    if (p != nullptr) ::munmap(p, size);
  });
}

std::optional<std::int64_t> free_host_memory() {
  std::ifstream info("/proc/meminfo");
  std::string key;
  std::int64_t kib = 0;
  while (info >> key >> kib && key != "MemAvailable:") info.ignore(64, '\n');
  if (key != "MemAvailable:") return std::nullopt;
  return kib * 1024;
}

}  // namespace vitrine
