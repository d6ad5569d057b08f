#include "kernels/cpu/backend.h"
#include "kernels/cpu/over_rows.h"

namespace vitrine::cpu {

void CpuBackend::rms_norm_(Tensor out, Tensor x, Tensor w, float eps) {
  std::int64_t E = x.dim(1);
  over_rows(x.dim(0), E, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t)
      k_.rms_norm(out.f32() + t * E, x.f32() + t * E, w.f32(), E, eps);
  });
}

void CpuBackend::layer_norm_(Tensor out, Tensor x, Tensor w, Tensor b, float eps) {
  std::int64_t E = x.dim(1);
  over_rows(x.dim(0), E, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t)
      k_.layer_norm(out.f32() + t * E, x.f32() + t * E, w.f32(), b.defined() ? b.f32() : nullptr, E,
                    eps);
  });
}

void CpuBackend::add_rms_norm_(Tensor out, Tensor residual, Tensor delta, Tensor w, float eps) {
  std::int64_t E = residual.dim(1);
  over_rows(residual.dim(0), 2 * E, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      float* r = residual.f32() + t * E;
      k_.add(r, r, delta.f32() + t * E, E);
      k_.rms_norm(out.f32() + t * E, r, w.f32(), E, eps);
    }
  });
}

}  // namespace vitrine::cpu
