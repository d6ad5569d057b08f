// Quantised panels against int8 activations, where there is no AMX.
//
// Arithmetic at every M and on every instruction set, per output and group of k that shares a
// scale, groups in ascending order:
//   acc = fma(float(dot), scale_x * scale_w, acc), then acc = fma(sum_x, offset, acc) where the
//   format has an offset
// with dot an exact integer. Levels are unsigned bytes (panels.h); what has to be taken off them is
// taken off the dot product by starting it at -bias * sum(x). Work: the 32 k of one vector of
// outputs are unpacked to eight vectors of quads and meet every row.
#include "kernels/cpu/ahead.h"
#include "kernels/cpu/isa/functions.h"
#include "kernels/cpu/isa/levels.h"
#include "panels.gen.h"

namespace vitrine::cpu::VT_ISA {
namespace {

constexpr int W = Vf::kWidth;

// `acc` of one vector of outputs and one row after a group. Not a call: q is in registers then
// (measured: levels of five bits take half as long again).
template <typename Format>
inline __attribute__((always_inline)) Vf add_group(const ByteRows& rows, std::int64_t at, int g,
                                                   const Vb* q, const Scales& w, Vf acc) {
  constexpr int kGroups = Format::kGroups, kGroupQuads = kQuads / kGroups;
  const std::int8_t* x = rows.q + at * kStep + g * kGroupQuads * 4;
  int sum = rows.sums[2 * at + g];
  if (kGroups == 1) sum += rows.sums[2 * at + 1];
  Vb dot = integers(-Format::kBias * sum);
  for (int i = 0; i < kGroupQuads; i += Format::kRun) {
    Vb run = Format::product(no_products(), q[g * kGroupQuads + i], quad(x + 4 * i));
    for (int r = 1; r < Format::kRun; ++r)
      run = Format::product(run, q[g * kGroupQuads + i + r], quad(x + 4 * (i + r)));
    dot = add_products(dot, run);
  }
  acc = fma(to_float(dot), mul(set1(rows.scale[at]), w.scale), acc);
  return Format::kOffsets ? fma(set1(rows.scale[at] * static_cast<float>(sum)), w.offset, acc)
                          : acc;
}

// One step of one vector of outputs for all rows; of one row it stays in `only`.
template <typename Format, bool kOne>
void step_rows(const BytesArgs& a, std::int64_t s, int v, const std::byte* super,
               const std::byte* step, float* sums, Vf& only) {
  Vb q[kQuads];
  Format::quads(step, v, q);
  for (int g = 0; g < Format::kGroups; ++g) {
    const Scales w = Format::scales(super, step, v, g);
    if constexpr (kOne) {
      only = add_group<Format>(a.rows, s, g, q, w, only);
    } else {
      for (int m = 0; m < a.M; ++m) {
        float* to = sums + m * kPanel + v * W;
        Vf acc = s == 0 && g == 0 ? zero() : load(to);
        store(to, add_group<Format>(a.rows, s * a.M + m, g, q, w, acc));
      }
    }
  }
}

template <typename Format, bool kOne>
void one_panel(const BytesArgs& a, const std::byte* panel, float* sums) {
  Vf acc[kVecs];
  for (Vf& v : acc) v = zero();
  for (std::int64_t s = 0; s < a.steps; ++s) {
    const std::byte* super = panel + Format::kSteps.super_at(s);
    const std::byte* step = panel + Format::kSteps.at(s);
    Near{step + 2048}.fetch((Format::kSteps.step + 63) / 64);
    for (int v = 0; v < kVecs; ++v) step_rows<Format, kOne>(a, s, v, super, step, sums, acc[v]);
  }
  for (int v = 0; v < kVecs && kOne; ++v) store(sums + v * W, acc[v]);
}
#if defined(__AVX512VNNI__)

// Many rows, where a product is one instruction and all else shows: the levels of eight steps stay
// in the first-level cache for all rows, and the sums of four rows in registers meanwhile.
constexpr int kManyRows = 32, kDepth = kSuper, kTogether = 4;

template <typename Format>
struct Unpacked {
  Vb q[kDepth][kVecs][kQuads];
  Scales scales[kDepth][Format::kGroups][kVecs];
};

// R rows from row m on over n steps from step s on.
template <typename Format, int R>
void some_rows(const BytesArgs& a, std::int64_t s, int n, const Unpacked<Format>& w, int m,
               float* sums) {
  constexpr int kGroups = Format::kGroups, kGroupQuads = kQuads / kGroups;
  Vf acc[R][kVecs];
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < kVecs; ++v) acc[r][v] = s == 0 ? zero() : load(sums + r * kPanel + v * W);
  for (int d = 0; d < n; ++d)
    for (int g = 0; g < kGroups; ++g) {
      const std::int64_t at = (s + d) * a.M + m;
      const std::int8_t* x = a.rows.q + at * kStep + g * kGroupQuads * 4;
      int sum[R];
      Vb dots[R][kVecs];
      for (int r = 0; r < R; ++r) {
        sum[r] = a.rows.sums[2 * (at + r) + g];
        if (kGroups == 1) sum[r] += a.rows.sums[2 * (at + r) + 1];
        for (Vb& dot : dots[r]) dot = integers(-Format::kBias * sum[r]);
      }
#pragma GCC unroll 8
      for (int i = 0; i < kGroupQuads; ++i)
        for (int r = 0; r < R; ++r) {
          const Vb four = quad(x + r * kStep + 4 * i);
          for (int v = 0; v < kVecs; ++v)
            dots[r][v] = Format::product(dots[r][v], w.q[d][v][g * kGroupQuads + i], four);
        }
      for (int r = 0; r < R; ++r) {
        const float scale = a.rows.scale[at + r];
        for (int v = 0; v < kVecs; ++v) {
          const Scales& by = w.scales[d][g][v];
          acc[r][v] = fma(to_float(dots[r][v]), mul(set1(scale), by.scale), acc[r][v]);
          if constexpr (Format::kOffsets)
            acc[r][v] = fma(set1(scale * static_cast<float>(sum[r])), by.offset, acc[r][v]);
        }
      }
    }
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < kVecs; ++v) store(sums + r * kPanel + v * W, acc[r][v]);
}

template <typename Format>
void unpack(const std::byte* panel, std::int64_t s, int n, Unpacked<Format>& to) {
  for (int d = 0; d < n; ++d) {
    const std::byte* super = panel + Format::kSteps.super_at(s + d);
    const std::byte* step = panel + Format::kSteps.at(s + d);
    for (int v = 0; v < kVecs; ++v) {
      Format::quads(step, v, to.q[d][v]);
      for (int g = 0; g < Format::kGroups; ++g)
        to.scales[d][g][v] = Format::scales(super, step, v, g);
    }
  }
}

// All panels take their turn at the same steps, so that those of the activations stay near.
template <typename Format>
void many_rows(const BytesArgs& a) {
  constexpr int kLines = static_cast<int>(Format::kSteps.super_at(kDepth) / 64);
  const int turns = a.M / kTogether, lines = (kLines + turns - 1) / turns;
  Unpacked<Format> w;
  for (std::int64_t s = 0; s < a.steps; s += kDepth) {
    const int n = static_cast<int>(a.steps - s < kDepth ? a.steps - s : kDepth);
    for (int p = 0; p < a.panels.count; ++p) {
      unpack<Format>(a.panels.at(p), s, n, w);
      const bool last = p + 1 == a.panels.count;
      Ahead ahead{a.panels.at(last ? 0 : p + 1) + Format::kSteps.super_at(last ? s + kDepth : s)};
      float* sums = a.acc + p * round_rows(a.M) * kPanel;
      int m = 0;
      for (; m + kTogether <= a.M; m += kTogether) {
        ahead.fetch(lines);
        some_rows<Format, kTogether>(a, s, n, w, m, sums + m * kPanel);
      }
      for (; m < a.M; ++m) some_rows<Format, 1>(a, s, n, w, m, sums + m * kPanel);
    }
  }
}

#endif

template <typename Format>
void all_panels(const BytesArgs& a) {
#if defined(__AVX512VNNI__)
  if (a.M >= kManyRows) return many_rows<Format>(a);
#endif
  for (int p = 0; p < a.panels.count; ++p) {
    float* sums = a.acc + p * round_rows(a.M) * kPanel;
    a.M == 1 ? one_panel<Format, true>(a, a.panels.at(p), sums)
             : one_panel<Format, false>(a, a.panels.at(p), sums);
  }
}

}  // namespace

void matmul_bytes(const BytesArgs& a) {
  with_panels<Arithmetic::kBytes>(AllPanels{}, a.format,
                                  [&]<typename P>() { all_panels<BytesOf<P>>(a); });
}

// A NaN or an infinity among the 32 makes the scale NaN or infinite, and so the outputs.
void quantize_bytes(bool quad_order, const float* x, std::int64_t steps, std::int64_t m, int M,
                    const ByteRows& out) {
  constexpr int kHalf = 16 / W;  // vectors of half a step
  for (std::int64_t s = 0; s < steps; ++s) {
    Vf v[2 * kHalf], top = zero(), check = zero();
    for (int i = 0; i < 2 * kHalf; ++i) {
      v[i] = load(x + s * kStep + i * W);
      top = max(top, abs(v[i]));
      check = add(check, mul(v[i], zero()));  // NaN where v is NaN or infinite
    }
    const float amax = reduce_max(top), bad = reduce_add(check);
    // Below the smallest normal number the inverse overflows; such a group counts as zero.
    const bool tiny = amax < 1e-30f;
    const std::int64_t at = s * M + m;
    out.scale[at] = bad != 0 ? __builtin_nanf("") : tiny ? 0 : amax / 127;
    const Vf inverse = set1(tiny || bad != 0 ? 0 : 127 / amax);
    for (int half = 0; half < 2; ++half) {
      Vf sum = zero();
      std::int8_t* to = out.q + at * kStep + 16 * half;
      for (int i = 0; i < kHalf; ++i) {
        Vf r = bad != 0 ? zero() : round(mul(v[half * kHalf + i], inverse));
        store_i8(to + i * W, r);
        sum = add(sum, r);
      }
      out.sums[2 * at + half] = static_cast<std::int32_t>(reduce_add(sum));
      if (!quad_order) continue;
      auto* all = reinterpret_cast<__m128i*>(to);
      _mm_storeu_si128(all, VT_ISA::quad_order(_mm_loadu_si128(all)));
    }
  }
}

}  // namespace vitrine::cpu::VT_ISA
