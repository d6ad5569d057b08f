// Counts this thread's heap allocations for the tests of the step path. A file of its own, so that
// the compiler does not see both sides of a replaced new and delete at once and warn about them.
#include <cstddef>
#include <cstdlib>
#include <new>

namespace vitrine {

static thread_local std::size_t count = 0;

std::size_t allocation_count();
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
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
