// A file of its own, so that the compiler does not see both sides of a replaced new and delete at
// once and warn about them.
#include "support/allocation_count.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace vitrine {

static std::atomic<std::size_t> count{0};

std::size_t allocation_count() { return count; }

}  // namespace vitrine

void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++vitrine::count;
  return std::malloc(size);
}
void* operator new(std::size_t size) {
  if (void* p = operator new(size, std::nothrow)) return p;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, std::align_val_t align) {
  ++vitrine::count;
  auto unit = static_cast<std::size_t>(align);
  if (void* p = std::aligned_alloc(unit, (size + unit - 1) / unit * unit)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
