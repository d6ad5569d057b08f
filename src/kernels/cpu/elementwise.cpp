#include <algorithm>
#include <cstring>

#include "kernels/cpu/backend.h"
#include "kernels/cpu/over_rows.h"

namespace vitrine::cpu {
void CpuBackend::add_(Tensor out, Tensor a, Tensor b) {
  std::int64_t E = out.shape.elements() / std::max<std::int64_t>(1, out.dim(0));
  over_rows(out.dim(0), E, [&](std::int64_t begin, std::int64_t end) {
    k_.add(out.f32() + begin * E, a.f32() + begin * E, b.f32() + begin * E, (end - begin) * E);
  });
}

void CpuBackend::activate_(Tensor x, Activation activation) {
  std::int64_t F = x.dim(1);
  over_rows(x.dim(0), 4 * F, [&](std::int64_t begin, std::int64_t end) {
    float* p = x.f32() + begin * F;
    k_.activate(p, p, (end - begin) * F, act_of(activation));
  });
}

void CpuBackend::glu_(Tensor out, Tensor gate, Tensor up, Activation activation) {
  std::int64_t F = out.dim(1);
  over_rows(out.dim(0), 4 * F, [&](std::int64_t begin, std::int64_t end) {
    k_.glu(out.f32() + begin * F, gate.f32() + begin * F, up.f32() + begin * F, (end - begin) * F,
           act_of(activation));
  });
}

void CpuBackend::softcap_(Tensor x, float cap) {
  std::int64_t E = x.dim(1);
  over_rows(x.dim(0), 4 * E, [&](std::int64_t begin, std::int64_t end) {
    k_.softcap(x.f32() + begin * E, (end - begin) * E, cap);
  });
}

void CpuBackend::gather_rows_(Tensor out, Tensor x, Tensor rows) {
  std::int64_t M = out.dim(0), E = out.dim(1);
  for (std::int64_t i = 0; i < M; ++i)
    std::memcpy(out.f32() + i * E, x.f32() + rows.i32()[i] * E, static_cast<std::size_t>(E) * 4);
}

}  // namespace vitrine::cpu
