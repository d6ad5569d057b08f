#pragma once

#include <cstdint>

namespace vitrine {

// A seed from the operating system, for requests that bring none.
std::uint64_t draw_seed();

}  // namespace vitrine
