#include "kernels/device.h"

#include "kernels/host_memory.h"

namespace vitrine {

std::optional<std::int64_t> Device::free_memory() const { return free_host_memory(); }

void Device::copy_kv_page(const KvCache& cache, std::int64_t from, std::int64_t to) {
  VT_CHECK(from >= 0 && from < cache.n_pages && to >= 0 && to < cache.n_pages && from != to,
           "copy_kv_page: page {} to {} of {}", from, to, cache.n_pages);
  std::int64_t bytes = kv_page_bytes(cache.shape);
  copy(cache.data + to * bytes, cache.data + from * bytes, bytes);
}

}  // namespace vitrine
