// What this core can do, for the share of the peak that a benchmark reports.
#include "kernels/cpu/isa/bytes.h"
#include "kernels/cpu/isa/functions.h"

namespace vitrine::cpu::VT_ISA {

// Independent chains of multiply-adds: enough to hide their latency on any core.
constexpr int kChains = 12;

double fma_flops(std::int64_t rounds, float* sink) {
  Vf acc[kChains], a = set1(0.999f), b = set1(1e-3f);
  for (int i = 0; i < kChains; ++i) acc[i] = set1(static_cast<float>(i));
  for (std::int64_t r = 0; r < rounds; ++r)
    for (Vf& v : acc) v = fma(v, a, b);
  Vf total = acc[0];
  for (int i = 1; i < kChains; ++i) total = add(total, acc[i]);
  *sink = reduce_add(total);
  return 2.0 * Vf::kWidth * kChains * static_cast<double>(rounds);
}

// (The operand that changes keeps the product within the loop.)
double byte_ops(std::int64_t rounds, float* sink) {
  Vb acc[kChains], w = bytes(3);
  for (int i = 0; i < kChains; ++i) acc[i] = integers(i);
  for (std::int64_t r = 0; r < rounds; ++r)
    for (Vb& v : acc) v = dot_unsigned(v, w, v);
  Vf total = to_float(acc[0]);
  for (int i = 1; i < kChains; ++i) total = add(total, to_float(acc[i]));
  *sink = reduce_add(total);
  return 2.0 * static_cast<int>(sizeof(Vb)) * kChains * static_cast<double>(rounds);
}

// Reads n floats (a multiple of 128) once, in four streams.
void read_all(const float* data, std::int64_t n, float* sink) {
  Vf acc[8];
  for (Vf& v : acc) v = zero();
  const std::int64_t quarter = n / 4;
  for (std::int64_t i = 0; i + 2 * Vf::kWidth <= quarter; i += 2 * Vf::kWidth)
    for (int s = 0; s < 4; ++s) {
      const float* p = data + s * quarter + i;
      _mm_prefetch(reinterpret_cast<const char*>(p + 1024), _MM_HINT_T0);
      acc[2 * s] = add(acc[2 * s], load(p));
      acc[2 * s + 1] = add(acc[2 * s + 1], load(p + Vf::kWidth));
    }
  Vf total = acc[0];
  for (int i = 1; i < 8; ++i) total = add(total, acc[i]);
  *sink = reduce_add(total);
}

}  // namespace vitrine::cpu::VT_ISA
