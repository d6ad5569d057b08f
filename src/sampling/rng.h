// Random numbers without state: Philox4x32-10, a keyed bijection of a 128-bit counter (Salmon,
// Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011). The number for a
// token is a function of where the token is, so it does not depend on the batch, on preemption or
// on retries.
#pragma once

#include <array>
#include <cstdint>

namespace vitrine {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

PhiloxCounter philox4x32_10(PhiloxCounter counter, PhiloxKey key);

// 64 uniform bits for one token: `choice_index` is the index of the choice within its request,
// `position` the token's index in its sequence. Key = seed, counter = (position, choice_index, 0).
std::uint64_t random_bits(std::uint64_t seed, std::uint32_t choice_index, std::uint64_t position);

// A uniform number in [0, 1) from the top 53 bits.
inline double uniform(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

// A seed from the operating system, for requests that bring none.
std::uint64_t draw_seed();

}  // namespace vitrine
