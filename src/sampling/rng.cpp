#include "sampling/rng.h"

#include <random>

namespace vitrine {

std::uint64_t draw_seed() {
  std::random_device device;
  const std::uint64_t high = device();
  return high << 32 | device();
}

}  // namespace vitrine
