#pragma once

#include <cstdint>

namespace vitrine {

// 64 uniform bits for one token: `choice_index` is the index of the choice within its request,
// `position` the token's index in its sequence. Key = seed, counter = (position, choice_index, 0).
std::uint64_t random_bits(std::uint64_t seed, std::uint32_t choice_index, std::uint64_t position);

// A seed from the operating system, for requests that bring none.
std::uint64_t draw_seed();

}  // namespace vitrine
