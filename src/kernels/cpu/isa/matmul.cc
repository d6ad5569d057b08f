// One panel of 32 outputs against M rows, in fp32.
//
// Arithmetic, the same for every format, M, ISA and block size: acc = fma(x[k], w[k],
// acc) in ascending k, weights decoded exactly to fp32. Work: few rows read the packed panel
// directly (each weight is decoded once and used M times from registers); many rows decode blocks
// of 128 k into the first-level cache and run an 8 x 32 register tile over them. Bound: memory for
// few rows, FMA for many.
#include "kernels/cpu/isa/functions.h"
#include "panels.gen.h"

namespace vitrine::cpu::VT_ISA {
namespace {

constexpr int W = Vf::kWidth;
constexpr int kFusedRows = W == 16 ? 4 : 2;

// M rows straight from the packed panel.
template <typename Decode, int M>
void fused(const PanelArgs& a) {
  Vf acc[M][kVecs];
  for (auto& row : acc)
    for (Vf& v : row) v = zero();
  Vf w[Decode::kGroup][kVecs];
  std::int64_t k = 0;
  auto accumulate = [&](int group) {
    for (int g = 0; g < group; ++g)
      for (int m = 0; m < M; ++m) {
        Vf x = set1(a.x[m * a.ldx + k + g]);
        for (int v = 0; v < kVecs; ++v) acc[m][v] = fma(x, w[g][v], acc[m][v]);
      }
  };
  constexpr std::int64_t kGroupBytes = Decode::kSteps.step / kStep * Decode::kGroup;
  for (; k + Decode::kGroup <= a.K; k += Decode::kGroup) {
    const std::byte* ahead = a.panel + k / Decode::kGroup * kGroupBytes + 2048;
    for (std::int64_t line = 0; line < kGroupBytes; line += 64)
      _mm_prefetch(reinterpret_cast<const char*>(ahead + line), _MM_HINT_T0);
    Decode::decode(a.panel, k, w);
    accumulate(Decode::kGroup);
  }
  if (k < a.K) {
    Decode::decode(a.panel, k, w);
    accumulate(static_cast<int>(a.K - k));
  }
  for (int m = 0; m < M; ++m)
    for (int v = 0; v < kVecs; ++v) store(a.acc + m * kPanel + v * W, acc[m][v]);
}

// M rows against kb unpacked k.
template <int M>
void tile(const float* w, const float* x, std::int64_t ldx, int kb, float* acc, bool first) {
  Vf c[M][kVecs];
  for (int m = 0; m < M; ++m)
    for (int v = 0; v < kVecs; ++v) c[m][v] = first ? zero() : load(acc + m * kPanel + v * W);
  for (int k = 0; k < kb; ++k) {
    Vf b[kVecs];
    for (int v = 0; v < kVecs; ++v) b[v] = load(w + k * kPanel + v * W);
    for (int m = 0; m < M; ++m) {
      Vf s = set1(x[m * ldx + k]);
      for (int v = 0; v < kVecs; ++v) c[m][v] = fma(s, b[v], c[m][v]);
    }
  }
  for (int m = 0; m < M; ++m)
    for (int v = 0; v < kVecs; ++v) store(acc + m * kPanel + v * W, c[m][v]);
}

constexpr int kTileRows = W == 16 ? 8 : 2;

}  // namespace

void matmul_block(const float* w, const float* x, std::int64_t ldx, int M, int kb, float* acc,
                  bool first) {
  int m = 0;
  for (; m + kTileRows <= M; m += kTileRows)
    tile<kTileRows>(w, x + m * ldx, ldx, kb, acc + m * kPanel, first);
  for (; m < M; ++m) tile<1>(w, x + m * ldx, ldx, kb, acc + m * kPanel, first);
}

namespace {

template <typename Decode>
void panel(const PanelArgs& a) {
  switch (a.M) {
    case 1:
      return fused<Decode, 1>(a);
    case 2:
      return fused<Decode, 2>(a);
    case 3:
      if constexpr (kFusedRows >= 4) return fused<Decode, 3>(a);
      break;
    case 4:
      if constexpr (kFusedRows >= 4) return fused<Decode, 4>(a);
      break;
    default:
      break;
  }
  for (std::int64_t k = 0; k < a.K; k += kBlockK) {
    int kb = static_cast<int>(a.K - k < kBlockK ? a.K - k : kBlockK);
    const float* w = a.unpacked;
    if constexpr (Decode::kGroup == 1) {
      w = reinterpret_cast<const float*>(a.panel) + k * kPanel;
    } else {
      // Past K the panel is zero padded to a whole step, and the scratch has room for it.
      Vf group[Decode::kGroup][kVecs];
      for (int i = 0; i < kb; i += Decode::kGroup) {
        Decode::decode(a.panel, k + i, group);
        for (int g = 0; g < Decode::kGroup; ++g)
          for (int v = 0; v < kVecs; ++v) store(a.unpacked + (i + g) * kPanel + v * W, group[g][v]);
      }
    }
    matmul_block(w, a.x + k, a.ldx, a.M, kb, a.acc, k == 0);
  }
}

}  // namespace

void matmul_panel(const PanelArgs& a) {
  with_panels<Arithmetic::kFp32>(AllPanels{}, a.format,
                                 [&]<typename P>() { panel<DecodeOf<P>>(a); });
}

}  // namespace vitrine::cpu::VT_ISA
