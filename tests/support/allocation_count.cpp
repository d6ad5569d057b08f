// A file of its own, so that the compiler does not see both sides of a replaced new and delete at
// once and warn about them.
#include "support/allocation_count.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace vitrine {

static std::atomic<std::size_t> count{0}, bytes{0};
static std::atomic<std::ptrdiff_t> held{0}, base{0}, peak{0};

std::size_t allocation_count() { return count; }
std::size_t allocated_bytes() { return bytes; }
std::size_t peak_bytes() {
  return static_cast<std::size_t>(std::max<std::ptrdiff_t>(peak - base, 0));
}
void reset_peak_bytes() { peak = base = held.load(); }

static void* noted(void* p, std::size_t size) {
  ++count;
  bytes += size;
  const auto now = held += static_cast<std::ptrdiff_t>(malloc_usable_size(p));
  for (std::ptrdiff_t most = peak; now > most && !peak.compare_exchange_weak(most, now);) {
  }
  return p;
}
static void release(void* p) {
  held -= static_cast<std::ptrdiff_t>(malloc_usable_size(p));
  std::free(p);
}

}  // namespace vitrine

void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return vitrine::noted(std::malloc(size), size);
}
void* operator new(std::size_t size) {
  if (void* p = operator new(size, std::nothrow)) return p;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, std::align_val_t align) {
  auto unit = static_cast<std::size_t>(align);
  if (void* p = std::aligned_alloc(unit, (size + unit - 1) / unit * unit))
    return vitrine::noted(p, size);
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { vitrine::release(p); }
void operator delete(void* p, std::size_t) noexcept { vitrine::release(p); }
void operator delete(void* p, std::align_val_t) noexcept { vitrine::release(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { vitrine::release(p); }
