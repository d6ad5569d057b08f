// AMX: panels of four to six bits against M rows, in integers.
//
// A weight is level * scale of its group, an integer, times a float per 256 k and output. An
// activation is an integer of 12 bits, 16 high + low, times a float per 256 k and row. Of their
// product the part that matters is exact:
//   high * level * scale
//   low * level * coarse, where kCoarse * coarse is the scale but for its last bits
// One row computes it from sums of level * high and level * low, many rows from three products of
// bytes (amx_levels.h). Sums over 256 k are exact integers either way, so a row has the same bits
// at every M; then
//   acc = fma(fma(-dmin, sum of mins, d * float(sum)), step, acc)
// in ascending k. The sum of mins, each times the sum of its group's activations, is an integer
// that is rounded to a float once: by TDPBF16PS from two parts of bf16, whose sums, of even and of
// odd k, are exact before the instruction adds them.
#define VT_ISA amx

#include <algorithm>

#include "kernels/cpu/amx_integers_few.h"
#include "kernels/cpu/amx_integers_tiles.h"
#include "panels.gen.h"

namespace vitrine::cpu {
namespace {

template <typename Panels>
void panels(const IntegerArgs& a) {
  using Format = IntegersOf<Panels>;
  static_assert(Panels::kIntegers == IntegerForm{Format::kLow, Format::kBias, Format::kGroups});
  switch (a.rows.M) {
    case 1:
      return few_rows<Format, 1>(a);
    case 2:
      return few_rows<Format, 2>(a);
    case 3:
      return few_rows<Format, 3>(a);
    case 4:
      return few_rows<Format, 4>(a);
    default:
      break;
  }
  static_assert(kIntegerFewRows == 4);
  use_tiles(std::min(a.rows.M, 16));
  if (a.rows.M > 16) {
    many_rows<Format>(a);
  } else {
    for (int p = 0; p < a.panels.count; ++p) sixteen_rows<Format>(a, p);
  }
  zero_sums();  // so that they hold nothing: amx_tiles.h
}

}  // namespace

void amx_matmul_integers(const IntegerArgs& a) {
  with_panels<Arithmetic::kAmxIntegers>(AllPanels{}, a.format, [&]<typename P>() { panels<P>(a); });
}

}  // namespace vitrine::cpu
