// AMX: 32 outputs against M rows, weights as tiles of bf16.
//
// Accumulated in fp32 by TDPBF16PS, k in ascending steps of 32. A tile gives each of its rows the
// bits that the row would have alone, and sums keep theirs on the way through memory, so that
// neither the number of rows nor the blocks of k show in a result.
#include <immintrin.h>

#include <algorithm>
#include <type_traits>

#include "kernels/cpu/ahead.h"
#include "kernels/cpu/amx_tiles.h"
#include "kernels/cpu/amx_unpack.h"
#include "kernels/cpu/kernels.h"
#include "panels.gen.h"

namespace vitrine::cpu {
namespace {

constexpr std::int64_t kAccStride = kPanel * 4;
constexpr int kStepWords = 2 * kTileWords;

// Panels that are tiles already.
struct ReadyTiles {
  static constexpr StepLayout kSteps{0, kStep16Bytes};
};
template <typename Format>
constexpr bool kReady = std::is_same_v<Format, ReadyTiles>;

template <typename Format>
constexpr int kStepLines = static_cast<int>(Format::kSteps.super_at(kSuper) / kSuper + 63) / 64;

// 2^power as a half.
__m512h power_of_two(int power) {
  return to_tiles::halves(_mm512_set1_epi16(static_cast<short>((power + 15) << 10)));
}

// One step of a panel to `to`, unless its tiles can be read where they are; after(i) follows each
// of the 32 vectors that were made.
template <typename Format, typename After>
const std::uint16_t* tiles_of(const std::byte* panel, std::int64_t s, __m512h power,
                              std::uint16_t* to, After&& after) {
  const std::byte* step = panel + Format::kSteps.at(s);
  if constexpr (kReady<Format>) {
    return reinterpret_cast<const std::uint16_t*>(step);
  } else {
    order_tile_loads(to);
    Format::step(step, power, to, after);
    order_tile_loads(to);
    return to;
  }
}

// The activations of a step, in tile 4, by both tiles of its weights.
void multiply_step(const std::uint16_t* w) {
  _tile_loadd(5, w, 64);
  _tile_dpbf16ps(0, 4, 5);
  _tile_loadd(5, w + kTileWords, 64);
  _tile_dpbf16ps(1, 4, 5);
}

// --- Up to 16 rows: weights stream from memory through the tile unit once.

// How far ahead of the work lines are fetched.
constexpr int kAheadBytes = 4096;

template <typename Format>
void one_panel(const AmxArgs& a, int p) {
  // A step is multiplied after the next one was unpacked: by then its stores have left for the
  // cache.
  alignas(64) std::uint16_t room[2][kReady<Format> ? 1 : kStepWords];
  constexpr int kLines = kStepLines<Format>;
  const std::byte* panel = a.panels.at(p);
  const __m512h power = power_of_two(a.power);
  const std::int64_t steps = a.rows.steps, step_words = amx_step_words(a.rows);
  auto multiply = [&](std::int64_t s, const std::uint16_t* w) {
    _tile_loadd(4, a.rows.x + s * step_words, 64);
    multiply_step(w);
  };
  _tile_zero(0);
  _tile_zero(1);
  const std::uint16_t* before = nullptr;
  for (std::int64_t s = 0; s < steps; ++s) {
    Near ahead{panel + Format::kSteps.at(s) + kAheadBytes};
    // Where there is work, one by one between it: many in a row wait for memory, and it for them.
    ahead.fetch(kReady<Format> ? kLines : kLines - 16);
    const std::uint16_t* w = tiles_of<Format>(panel, s, power, room[s % 2], [&](int i) {
      if (i % 2 == 0) ahead.fetch(1);
    });
    if (before != nullptr) multiply(s - 1, before);
    before = w;
  }
  multiply(steps - 1, before);
  float* acc = a.acc + p * round_rows(a.rows.M) * kPanel;
  _tile_stored(0, acc, kAccStride);
  _tile_stored(1, acc + 16, kAccStride);
}

// --- More: blocks of 512 k, of which the weights stay in the first-level cache for all rows and
// the activations in the second for all panels. Activations pass the first level by, which has no
// room for them beside the weights. The next weights and sums are fetched evenly meanwhile.

struct Next {
  Ahead weights;
  const std::byte* end;
  int lines;  // with every step
};

// 16 rows over n steps.
void sixteen_rows(const std::uint16_t* x, int n, const std::uint16_t* w, float* acc, bool first,
                  Next& next) {
  constexpr int kSumLines = 16 * kPanel * 4 / 64 / kAmxBlockSteps;
  Near sums{reinterpret_cast<const std::byte*>(acc + 16 * kPanel)};
  if (first) {
    _tile_zero(0);
    _tile_zero(1);
  } else {
    _tile_loadd(0, acc, kAccStride);
    _tile_loadd(1, acc + 16, kAccStride);
  }
  for (int i = 0; i < n; ++i, x += kTileWords, w += kStepWords) {
    _tile_stream_loadd(4, x, 64);
    multiply_step(w);
    sums.fetch(kSumLines);
    if (next.weights.at < next.end) next.weights.fetch(next.lines);
  }
  _tile_stored(0, acc, kAccStride);
  _tile_stored(1, acc + 16, kAccStride);
}

template <typename Format>
void many_rows(const AmxArgs& a) {
  constexpr int kDepth = kAmxBlockSteps;
  static_assert(kDepth % kSuper == 0);
  constexpr std::int64_t kBytes = Format::kSteps.super_at(kDepth);
  alignas(64) std::uint16_t room[kReady<Format> ? 1 : kDepth * kStepWords];
  const __m512h power = power_of_two(a.power);
  const std::int64_t steps = a.rows.steps, M = a.rows.M, places = (M + 15) / 16 * kDepth;
  const int count = a.panels.count, lines = static_cast<int>((kBytes / 64 + places - 1) / places);
  for (std::int64_t s = 0; s < steps; s += kDepth) {
    const int n = static_cast<int>(std::min<std::int64_t>(steps - s, kDepth));
    for (int p = 0; p < count; ++p) {
      const std::byte* panel = a.panels.at(p);
      const std::uint16_t* w = tiles_of<Format>(panel, s, power, room, [](int) {});
      for (int i = 1; i < n && !kReady<Format>; ++i)
        tiles_of<Format>(panel, s + i, power, room + i * kStepWords, [](int) {});
      const bool last = p + 1 == count;
      const std::byte* after =
          a.panels.at(last ? 0 : p + 1) + Format::kSteps.super_at(last ? s + kDepth : s);
      Next next{{after}, after + kBytes, lines};
      float* acc = a.acc + p * round_rows(M) * kPanel;
      for (std::int64_t m = 0; m < M; m += 16)
        sixteen_rows(a.rows.x + amx_row_at(a.rows, m, s), n, w, acc + m * kPanel, s == 0, next);
    }
  }
}

template <typename Format>
void panels(const AmxArgs& a) {
  use_tiles(std::min(a.rows.M, 16));
  if (a.rows.M > 16) return many_rows<Format>(a);
  for (int p = 0; p < a.panels.count; ++p) one_panel<Format>(a, p);
}

}  // namespace

void amx_matmul(const AmxArgs& a) {
  with_panels<Arithmetic::kAmx>(AllPanels{}, a.format, [&]<typename P>() {
    if constexpr (P::kBf16Tiles)
      panels<ReadyTiles>(a);
    else
      panels<to_tiles::TilesOf<P>>(a);
  });
}

void amx_convert(const AmxRows& rows, const float* x, std::int64_t n, std::int64_t m) {
  alignas(64) std::uint16_t order[32];
  for (int i = 0; i < 32; ++i)
    order[i] = static_cast<std::uint16_t>(rows.quads ? i / 4 * 4 + i % 4 / 2 + i % 2 * 2 : i);
  const __m512i from = _mm512_load_si512(order);
  const __m512 factor = _mm512_set1_ps(rows.factor);
  auto load = [&](std::int64_t k) {
    const std::int64_t left = n - k;
    auto mask = static_cast<__mmask16>(left >= 16 ? 0xFFFF : left > 0 ? (1u << left) - 1 : 0);
    return _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, x + k), factor);
  };
  for (std::int64_t s = 0; s < rows.steps; ++s) {
    auto words =
        reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(load(s * kStep + 16), load(s * kStep)));
    _mm512_store_si512(rows.x + amx_row_at(rows, m, s), _mm512_permutexvar_epi16(from, words));
  }
}

}  // namespace vitrine::cpu
