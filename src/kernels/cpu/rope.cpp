#include <cmath>

#include "kernels/cpu/backend.h"
#include "kernels/cpu/over_rows.h"

namespace vitrine::cpu {

void CpuBackend::rope_table_(Tensor table, Tensor positions, Tensor inv_freq, float scale) {
  std::int64_t half = table.dim(1);
  over_rows(table.dim(0), 32 * half, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t)
      for (std::int64_t i = 0; i < half; ++i) {
        float angle = static_cast<float>(positions.i32()[t]) * inv_freq.f32()[i];
        float* to = table.f32() + (t * half + i) * 2;
        to[0] = std::cos(angle) * scale;
        to[1] = std::sin(angle) * scale;
      }
  });
}

void CpuBackend::rope_(Tensor x, Tensor table) {
  std::int64_t H = x.dim(1), D = x.dim(2), half = table.dim(1);
  over_rows(x.dim(0), H * D, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t)
      for (std::int64_t h = 0; h < H; ++h)
        k_.rope(x.f32() + (t * H + h) * D, table.f32() + t * half * 2, half);
  });
}

}  // namespace vitrine::cpu
