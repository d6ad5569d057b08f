// For tests of what must not allocate, or not much. Link vt_allocation_count, which replaces operator
// new.
#pragma once

#include <cstddef>

namespace vitrine {

// Calls of operator new so far, of all threads. Calls of malloc and mmap do not count.
std::size_t allocation_count();
// The bytes they asked for, freed or not.
std::size_t allocated_bytes();
// The most bytes that were held at once since the last reset, beyond those held then.
std::size_t peak_bytes();
void reset_peak_bytes();

}  // namespace vitrine
