// Norms, RoPE, activations: one row or one run of elements. An element's result does not depend on
// its place in the run: tails go through the same vector code on a padded copy.
#include <cmath>
#include <cstring>

#include "kernels/cpu/isa/functions.h"
#include "kernels/cpu/isa/simd.h"

namespace vitrine::cpu::VT_ISA {
namespace {

constexpr int W = Vf::kWidth;

// out[i] = f(a[i], b[i]) for n elements.
template <typename F>
void map(float* out, const float* a, const float* b, std::int64_t n, F f) {
  std::int64_t i = 0;
  for (; i + W <= n; i += W) store(out + i, f(load(a + i), load(b + i)));
  if (i == n) return;
  float ta[W] = {}, tb[W] = {}, to[W];
  std::memcpy(ta, a + i, sizeof(float) * (n - i));
  std::memcpy(tb, b + i, sizeof(float) * (n - i));
  store(to, f(load(ta), load(tb)));
  std::memcpy(out + i, to, sizeof(float) * (n - i));
}

// Sum of f(x[i]) in a fixed order: W partial sums, the tail as one more vector.
template <typename F>
float sum_of(const float* x, std::int64_t n, F f) {
  Vf total = zero();
  std::int64_t i = 0;
  for (; i + W <= n; i += W) total = add(total, f(load(x + i)));
  float rest = 0;
  for (; i < n; ++i) {
    float one[W] = {x[i]}, result[W];
    store(result, f(load(one)));
    rest += result[0];
  }
  return reduce_add(total) + rest;
}

}  // namespace

void rms_norm(float* out, const float* x, const float* w, std::int64_t n, float eps) {
  float mean = sum_of(x, n, [](Vf v) { return mul(v, v); }) / static_cast<float>(n);
  Vf scale = set1(1 / std::sqrt(mean + eps));
  map(out, x, w, n, [&](Vf v, Vf weight) { return mul(mul(v, scale), weight); });
}

void layer_norm(float* out, const float* x, const float* w, const float* b, std::int64_t n,
                float eps) {
  float mean = sum_of(x, n, [](Vf v) { return v; }) / static_cast<float>(n);
  Vf m = set1(mean);
  float var = sum_of(x, n, [&](Vf v) {
    Vf d = sub(v, m);
    return mul(d, d);
  });
  Vf scale = set1(1 / std::sqrt(var / static_cast<float>(n) + eps));
  map(out, x, w, n, [&](Vf v, Vf weight) { return mul(mul(sub(v, m), scale), weight); });
  if (b != nullptr) map(out, out, b, n, [](Vf v, Vf bias) { return add(v, bias); });
}

void rope(float* head, const float* table, std::int64_t half) {
  for (std::int64_t i = 0; i < half; ++i) {
    float c = table[2 * i], s = table[2 * i + 1], a = head[i], b = head[i + half];
    head[i] = a * c - b * s;
    head[i + half] = b * c + a * s;
  }
}

void add(float* out, const float* a, const float* b, std::int64_t n) {
  map(out, a, b, n, [](Vf x, Vf y) { return add(x, y); });
}

namespace {

Vf silu(Vf x) { return div(x, add(set1(1), exp(negative(set1(-1), x)))); }
Vf gelu(Vf x) {
  return mul(mul(set1(0.5f), x), add(set1(1), erf(mul(x, set1(0.70710678118654752f)))));
}
Vf gelu_tanh(Vf x) {
  Vf inner = mul(set1(0.79788456080286536f), fma(mul(mul(x, x), x), set1(0.044715f), x));
  return mul(mul(set1(0.5f), x), add(set1(1), tanh(inner)));
}
Vf relu(Vf x) { return max(zero(), x); }

template <typename F>
void with_activation(Act act, F f) {
  switch (act) {
    case Act::kSilu:
      return f([](Vf x) { return silu(x); });
    case Act::kGelu:
      return f([](Vf x) { return gelu(x); });
    case Act::kGeluTanh:
      return f([](Vf x) { return gelu_tanh(x); });
    case Act::kRelu:
      return f([](Vf x) { return relu(x); });
  }
}

}  // namespace

void activate(float* out, const float* x, std::int64_t n, Act act) {
  with_activation(act, [&](auto f) { map(out, x, x, n, [&](Vf v, Vf) { return f(v); }); });
}

void glu(float* out, const float* gate, const float* up, std::int64_t n, Act act) {
  with_activation(act,
                  [&](auto f) { map(out, gate, up, n, [&](Vf g, Vf u) { return mul(f(g), u); }); });
}

void softcap(float* x, std::int64_t n, float cap) {
  Vf c = set1(cap);
  map(x, x, x, n, [&](Vf v, Vf) { return mul(c, tanh(div(v, c))); });
}

}  // namespace vitrine::cpu::VT_ISA
