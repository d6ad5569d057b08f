#include <cmath>

#include "kernels/ref/backend.h"

namespace vitrine::ref {

void RefBackend::rope_table_(Tensor table, Tensor positions, Tensor inv_freq, float scale) {
  std::int64_t T = table.dim(0), half = table.dim(1);
  for (std::int64_t t = 0; t < T; ++t)
    for (std::int64_t i = 0; i < half; ++i) {
      float angle = static_cast<float>(positions.i32()[t]) * inv_freq.f32()[i];
      float* to = table.f32() + (t * half + i) * 2;
      to[0] = std::cos(angle) * scale;
      to[1] = std::sin(angle) * scale;
    }
}

void RefBackend::rope_(Tensor x, Tensor table) {
  std::int64_t T = x.dim(0), H = x.dim(1), D = x.dim(2), half = table.dim(1);
  for (std::int64_t t = 0; t < T; ++t)
    for (std::int64_t h = 0; h < H; ++h) {
      float* head = x.f32() + (t * H + h) * D;
      for (std::int64_t i = 0; i < half; ++i) {
        float c = table.f32()[(t * half + i) * 2], s = table.f32()[(t * half + i) * 2 + 1];
        float a = head[i], b = head[i + half];
        head[i] = a * c - b * s;
        head[i + half] = b * c + a * s;
      }
    }
}

}  // namespace vitrine::ref
