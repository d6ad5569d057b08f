// More rows in integers, by the tile unit.
#pragma once

#include <algorithm>

#include "kernels/cpu/ahead.h"
#include "kernels/cpu/amx_integers.h"
#include "kernels/cpu/amx_tiles.h"

namespace vitrine::cpu {
namespace {

// The bytes of 64 k and 16 outputs, [quad of k][16 outputs][4 k].
struct alignas(64) Chunk {
  std::int8_t first[16][64], rest[16][64], coarse[16][64];
};
// What sums of groups meet: [group][16 outputs].
struct alignas(64) GroupTiles {
  std::uint16_t mins[16][32];    // bf16, each twice
  std::int8_t left_out[16][64];  // each four times
};
// 256 k.
struct alignas(4096) Unpacked {
  Chunk chunks[kChunks];
  GroupTiles groups;
  __m512 unit, min_unit;
};

// Step s of a panel to its half of a chunk.
template <typename Format>
inline __attribute__((always_inline)) void unpack_step(const std::byte* panel, std::int64_t s,
                                                       int tile, Chunk& to) {
  constexpr int kGroupQuads = kQuads / Format::kGroups;
  const std::byte *super = panel + Format::kSteps.super_at(s), *step = panel + Format::kSteps.at(s);
  const int half = static_cast<int>(s % 2) * kQuads;
  Vb q[kQuads];
  Format::quads(step, tile, q);
#pragma GCC unroll 2
  for (int g = 0; g < Format::kGroups; ++g) {
    const typename Format::Bytes make(Format::scale(super, step, tile, g));
#pragma GCC unroll 8
    for (int i = g * kGroupQuads; i < (g + 1) * kGroupQuads; ++i) {
      Vb first, rest, coarse;
      Format::bytes(q[i], make, first, rest, coarse);
      _mm512_store_si512(to.first[half + i], first);
      _mm512_store_si512(to.rest[half + i], rest);
      if constexpr (Format::kThird) _mm512_store_si512(to.coarse[half + i], coarse);
    }
  }
}

template <typename Format>
void unpack_group(const std::byte* panel, std::int64_t s, int tile, GroupTiles& to) {
  const std::byte* step = panel + Format::kSteps.at(s);
  const __m512 min = _mm512_cvtepi32_ps(Format::min(step, tile));
  const __m512i bf16 = _mm512_srli_epi32(_mm512_castps_si512(min), 16);
  _mm512_store_si512(to.mins[s % kSuper], or_(bf16, _mm512_slli_epi32(bf16, 16)));
  _mm512_store_si512(to.left_out[s % kSuper],
                     four_bytes(Format::left_out(Format::scale(nullptr, step, tile, 0))));
}

// What the tile unit left of 16 rows by two tiles of 16 outputs: of `first`, of the others, of
// mins.
struct alignas(4096) Dots {
  std::int32_t first[2][16][16], others[2][16][16];
  float mins[2][16][16];
};

// Sums of 16 outputs are tiles 0 and 1, of the other 16 tiles 2 and 3. Weights may need all eight
// bits for their size.
#define VT_PRODUCT(is_signed, sums) \
  if constexpr (is_signed)          \
    _tile_dpbssd(sums, 4, 5);       \
  else                              \
    _tile_dpbsud(sums, 4, 5)
#define VT_BY_FIRST(sums) VT_PRODUCT(Format::kSignedFirst, sums)
#define VT_BY_REST(sums) VT_PRODUCT(Format::kSignedRest, sums)
#define VT_BY_COARSE(sums) VT_PRODUCT(Format::kSignedCoarse, sums)

// 64 k of 16 rows; after(i) follows product i of 6. Activations pass the first-level cache by,
// which has no room for them beside the weights.
template <typename Format, typename After>
inline __attribute__((always_inline)) void multiply_chunk(const std::int8_t* x, const Chunk& w,
                                                          const Chunk& w2, After&& after) {
  _tile_stream_loadd(4, x, 64);
  _tile_loadd(5, w.first, 64);
  VT_BY_FIRST(0);
  after(0);
  _tile_loadd(5, w.rest, 64);
  VT_BY_REST(1);
  after(1);
  _tile_loadd(5, w2.rest, 64);
  VT_BY_REST(3);
  after(2);
  _tile_loadd(5, w2.first, 64);
  VT_BY_FIRST(2);
  after(3);
  _tile_stream_loadd(4, x + kTileBytes, 64);
  if constexpr (Format::kThird) _tile_loadd(5, w2.coarse, 64);
  VT_BY_COARSE(3);
  after(4);
  _tile_loadd(5, Format::kThird ? w.coarse : w.first, 64);
  VT_BY_COARSE(1);
  after(5);
}

// What sums of low parts meet.
void by_left_out(const std::int8_t* lows, const GroupTiles& w, const GroupTiles& w2) {
  _tile_loadd(4, lows, 64);
  _tile_loadd(5, w.left_out, 64);
  _tile_dpbssd(1, 4, 5);
  _tile_loadd(5, w2.left_out, 64);
  _tile_dpbssd(3, 4, 5);
}

// The sums of mins of 16 rows.
void multiply_mins(const std::uint16_t* sums, const GroupTiles& w, const GroupTiles& w2, Dots& to) {
  _tile_zero(0);
  _tile_zero(2);
  _tile_loadd(4, sums, 64);
  _tile_loadd(5, w.mins, 64);
  _tile_dpbf16ps(0, 4, 5);
  _tile_loadd(5, w2.mins, 64);
  _tile_dpbf16ps(2, 4, 5);
  _tile_stored(0, to.mins[0], 64);
  _tile_stored(2, to.mins[1], 64);
}

void zero_sums() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}
void store_sums(Dots& to) {
  _tile_stored(0, to.first[0], 64);
  _tile_stored(1, to.others[0], 64);
  _tile_stored(2, to.first[1], 64);
  _tile_stored(3, to.others[1], 64);
}

// Row m of 16, by 16 outputs, to its sums.
template <typename Format>
inline __attribute__((always_inline)) void add_dots(const Dots& dots, int tile, int m, __m512 unit,
                                                    __m512 min_unit, float step, float* acc,
                                                    bool first) {
  const Vb sum = _mm512_add_epi32(
      _mm512_slli_epi32(_mm512_load_si512(dots.first[tile][m]), Format::kFirstShift),
      _mm512_load_si512(dots.others[tile][m]));
  const __m512 mins = Format::kMins ? _mm512_load_ps(dots.mins[tile][m]) : _mm512_setzero_ps();
  float* to = acc + m * kPanel + tile * 16;
  const __m512 before = first ? _mm512_setzero_ps() : _mm512_loadu_ps(to);
  _mm512_storeu_ps(to, scaled<Format>(sum, mins, unit, min_unit, step, before));
}

// --- Up to 16: weights stream from memory. A chunk is multiplied when the next one is unpacked, a
// sum of 256 k scaled when the one after it is.

template <typename Format>
void sixteen_rows(const IntegerArgs& a, int p) {
  constexpr int kLines = 2 * Format::kSteps.step / 64;
  const IntegerRows& x = a.rows;
  const std::byte* panel = a.panels.at(p);
  float* acc = a.acc + p * round_rows(x.M) * kPanel;
  Chunk chunks[2][2];
  GroupTiles groups[2][2] = {};  // [256 k, even or odd][tile]
  Dots dots[2];
  const std::int64_t count = (x.steps + 1) / 2;
  auto scale_sums = [&](std::int64_t super) {
    const std::byte* head = panel + Format::kSteps.super_at(super * kSuper);
    for (int tile = 0; tile < 2; ++tile) {
      const __m512 unit = Format::unit(head, tile), min_unit = min_unit_of<Format>(head, tile);
      for (int m = 0; m < x.M; ++m)
        add_dots<Format>(dots[super % 2], tile, m, unit, min_unit, x.step[super * 16 + m], acc,
                         super == 0);
    }
  };
  auto multiply = [&](std::int64_t c) {
    const std::int64_t super = c / kChunks;
    if (c % kChunks == 0) zero_sums();
    multiply_chunk<Format>(x.q + c * 2 * kTileBytes, chunks[c % 2][0], chunks[c % 2][1],
                           [](int) {});
    if (c % kChunks == 0 && super > 0) scale_sums(super - 1);
    if (c % kChunks != kChunks - 1 && c + 1 != count) return;
    Dots& to = dots[super % 2];
    const GroupTiles* w = groups[super % 2];
    if constexpr (Format::kMins) by_left_out(x.low_tiles + super * kTileBytes, w[0], w[1]);
    store_sums(to);
    if constexpr (Format::kMins) multiply_mins(x.sum_tiles + super * kTileWords, w[0], w[1], to);
  };
  for (std::int64_t c = 0; c < count; ++c) {
    Near ahead{panel + Format::kSteps.at(2 * c) + 4096};
    order_tile_loads(chunks);
    for (std::int64_t s = 2 * c; s < std::min(x.steps, 2 * c + 2); ++s)
      for (int tile = 0; tile < 2; ++tile) {
        ahead.fetch(kLines / 4);
        unpack_step<Format>(panel, s, tile, chunks[c % 2][tile]);
        if constexpr (Format::kMins)
          unpack_group<Format>(panel, s, tile, groups[s / kSuper % 2][tile]);
      }
    order_tile_loads(chunks);
    if (c > 0) multiply(c - 1);
  }
  multiply(count - 1);
  order_tile_loads(dots);
  scale_sums((count - 1) / kChunks);
}

// --- More: all panels take their turn at the same 256 k, so that those of the activations stay
// near. The products of 16 rows go to their sums between the products of the next 16: all at once
// they would not overlap with them beside a busy neighbour.

template <typename Format>
void unpack(const std::byte* panel, std::int64_t first, std::int64_t steps, int tile,
            Unpacked& to) {
  order_tile_loads(&to);
  for (std::int64_t s = 0; s < steps; ++s) {
    unpack_step<Format>(panel, first + s, tile, to.chunks[s / 2]);
    if constexpr (Format::kMins) unpack_group<Format>(panel, first + s, tile, to.groups);
  }
  to.unit = Format::unit(panel + Format::kSteps.super_at(first), tile);
  to.min_unit = min_unit_of<Format>(panel + Format::kSteps.super_at(first), tile);
  order_tile_loads(&to);
}

template <typename Format>
void many_rows(const IntegerArgs& a) {
  constexpr std::int64_t kBytes = Format::kSteps.super_at(kSuper);
  const IntegerRows& x = a.rows;
  const std::int64_t blocks = round_rows(x.M) / 16;
  Unpacked u[2];
  Dots dots[2];
  for (Unpacked& tile : u) tile.groups = {};
  const int lines = static_cast<int>((kBytes / 64 + blocks - 1) / blocks);
  for (std::int64_t s = 0; s < x.steps; s += kSuper) {
    const std::int64_t super = s / kSuper, steps = std::min<std::int64_t>(x.steps - s, kSuper);
    const float* step = x.step + super * blocks * 16;
    for (int p = 0; p < a.panels.count; ++p) {
      for (int tile = 0; tile < 2; ++tile) unpack<Format>(a.panels.at(p), s, steps, tile, u[tile]);
      const bool last = p + 1 == a.panels.count;
      Ahead ahead{a.panels.at(last ? 0 : p + 1) + Format::kSteps.super_at(last ? s + kSuper : s)};
      float* acc = a.acc + p * round_rows(x.M) * kPanel;
      // The i-th of 32 vectors that are left of a block: a row by one of the tiles. (What becomes
      // of rows beyond M nobody reads.)
      auto add_left = [&](std::int64_t b, int i) {
        const int tile = i % 2, m = i / 2;
        add_dots<Format>(dots[b % 2], tile, m, u[tile].unit, u[tile].min_unit, step[b * 16 + m],
                         acc + b * 16 * kPanel, s == 0);
      };
      for (std::int64_t b = 0; b < blocks; ++b) {
        ahead.fetch(lines);
        const std::int64_t block = super * blocks + b;
        const std::int8_t* rows = x.q + block * kChunks * 2 * kTileBytes;
        if constexpr (Format::kMins)
          multiply_mins(x.sum_tiles + block * kTileWords, u[0].groups, u[1].groups, dots[b % 2]);
        zero_sums();
        if constexpr (Format::kMins)
          by_left_out(x.low_tiles + block * kTileBytes, u[0].groups, u[1].groups);
        Near sums{reinterpret_cast<const std::byte*>(acc + b * 16 * kPanel)};
        for (int c = 0; c < kChunks; ++c, rows += 2 * kTileBytes) {
          sums.fetch(8);
          // One or two of the eight that are a chunk's share after every product.
          auto add_some = [&](int product) {
            if (b == 0) return;
            for (int i = (product * 4 + 2) / 3; i < (product * 4 + 6) / 3; ++i)
              add_left(b - 1, c * 8 + i);
          };
          if (2 * c < steps) {
            multiply_chunk<Format>(rows, u[0].chunks[c], u[1].chunks[c], add_some);
          } else {
            for (int product = 0; product < 6; ++product) add_some(product);
          }
        }
        store_sums(dots[b % 2]);
      }
      order_tile_loads(dots);
      for (int i = 0; i < 32; ++i) add_left(blocks - 1, i);
    }
  }
}

}  // namespace
}  // namespace vitrine::cpu
