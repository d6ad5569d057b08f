// For tests of what must not allocate. Link vt_allocation_count, which replaces operator new.
#pragma once

#include <cstddef>

namespace vitrine {

// Calls of operator new so far, of all threads. Calls of malloc and mmap do not count.
std::size_t allocation_count();

}  // namespace vitrine
