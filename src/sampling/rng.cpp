#include "sampling/rng.h"

#include <random>

#include "base/philox.h"

namespace vitrine {

std::uint64_t random_bits(std::uint64_t seed, std::uint32_t choice_index, std::uint64_t position) {
  const PhiloxCounter out =
      philox4x32_10({static_cast<std::uint32_t>(position),
                     static_cast<std::uint32_t>(position >> 32), choice_index, 0},
                    seed);
  return std::uint64_t{out.b} << 32 | out.a;
}

std::uint64_t draw_seed() {
  std::random_device device;
  const std::uint64_t high = device();
  return high << 32 | device();
}

}  // namespace vitrine
