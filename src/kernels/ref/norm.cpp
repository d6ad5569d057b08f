#include <cmath>

#include "kernels/ref/backend.h"

namespace vitrine::ref {

void RefBackend::rms_norm_(Tensor out, Tensor x, Tensor w, float eps) {
  std::int64_t T = x.dim(0), E = x.dim(1);
  for (std::int64_t t = 0; t < T; ++t) {
    const float* from = x.f32() + t * E;
    float sum = 0;
    for (std::int64_t e = 0; e < E; ++e) sum += from[e] * from[e];
    float scale = 1 / std::sqrt(sum / static_cast<float>(E) + eps);
    for (std::int64_t e = 0; e < E; ++e) out.f32()[t * E + e] = from[e] * scale * w.f32()[e];
  }
}

void RefBackend::layer_norm_(Tensor out, Tensor x, Tensor w, Tensor b, float eps) {
  std::int64_t T = x.dim(0), E = x.dim(1);
  for (std::int64_t t = 0; t < T; ++t) {
    const float* from = x.f32() + t * E;
    float sum = 0, squares = 0;
    for (std::int64_t e = 0; e < E; ++e) sum += from[e];
    float mean = sum / static_cast<float>(E);
    for (std::int64_t e = 0; e < E; ++e) squares += (from[e] - mean) * (from[e] - mean);
    float scale = 1 / std::sqrt(squares / static_cast<float>(E) + eps);
    for (std::int64_t e = 0; e < E; ++e)
      out.f32()[t * E + e] = (from[e] - mean) * scale * w.f32()[e] + (b.defined() ? b.f32()[e] : 0);
  }
}

}  // namespace vitrine::ref
