#include "kernels/cpu/packed.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "quant/format.h"
#include "quant/q4_0.h"
#include "quant/q4_k.h"
#include "quant/q5_k.h"
#include "quant/q6_k.h"
#include "quant/q8_0.h"

namespace vitrine::cpu {
namespace {

std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

std::int64_t panel_bytes_of(Layout layout, std::int64_t cols) {
  std::int64_t steps = round_up(cols, kStep) / kStep;
  switch (layout) {
    case Layout::kF32:
      return cols * kPanel * 4;
    case Layout::k16:
      return steps * kStep16Bytes;
    case Layout::kQ8:
      return kStepsQ8.bytes(steps);
    case Layout::kQ4:
      return kStepsQ4.bytes(steps);
    case Layout::kQ4K:
      return kStepsQ4K.bytes(steps);
    case Layout::kQ5K:
      return kStepsQ5K.bytes(steps);
    case Layout::kQ6K:
      return kStepsQ6K.bytes(steps);
    case Layout::kRows:
      return 0;
  }
  return 0;
}

// The levels of a step's 32 k, a byte each.
struct Levels {
  std::uint64_t eight[4];
};
// (bytes >> shift & mask) of 32 bytes.
Levels levels_of(const std::uint8_t* bytes, int shift, std::uint8_t mask) {
  Levels out;
  std::memcpy(&out, bytes, sizeof out);
  for (std::uint64_t& x : out.eight) x = x >> shift & (0x0101010101010101u * mask);
  return out;
}

// A lane of a tile is one output: a 32-bit word per vector, even k in its low half, odd k in its
// high half.
void put_word(std::byte* tile, std::int64_t vector, std::int64_t lane, std::uint64_t even,
              std::uint64_t odd) {
  auto word = static_cast<std::uint32_t>(even | odd << 16);
  std::memcpy(tile + vector * 64 + lane * 4, &word, 4);
}

void put_nibbles(std::byte* tile, std::int64_t lane, const Levels& levels) {
  for (int v = 0; v < 4; ++v)
    put_word(tile, v, lane, _pext_u64(levels.eight[v], 0x000F000F000F000F),
             _pext_u64(levels.eight[v], 0x0F000F000F000F00));
}

void put_fifths(std::byte* tile, std::int64_t lane, const Levels& levels) {
  std::uint64_t even = 0, odd = 0;
  for (int e = 0; e < 4; ++e) {
    even |= _pext_u64(levels.eight[e], 0x0010001000100010) << (4 * e);
    odd |= _pext_u64(levels.eight[e], 0x1000100010001000) << (4 * e);
  }
  put_word(tile, 0, lane, even, odd);
}

void put_sixths(std::byte* tile, std::int64_t lane, const Levels& levels) {
  for (int v = 0; v < 2; ++v) {
    std::uint64_t even = 0, odd = 0;
    for (int e = 0; e < 2; ++e) {
      even |= _pext_u64(levels.eight[2 * v + e], 0x0030003000300030) << (8 * e);
      odd |= _pext_u64(levels.eight[2 * v + e], 0x3000300030003000) << (8 * e);
    }
    put_word(tile, v, lane, even, odd);
  }
}

// One output n of the panel at `to`, from its row in the file.
void pack_16(std::byte* to, std::int64_t n, const std::byte* row, std::int64_t K) {
  auto place = [&](std::int64_t k) {
    std::byte* tile = to + k / kStep * kStep16Bytes + n / 16 * (kStep16Bytes / 2);
    return tile + (k % kStep / 2 * 16 + n % 16) * 4;
  };
  for (std::int64_t k = 0; k + 1 < K; k += 2) std::memcpy(place(k), row + k * 2, 4);
  if (K % 2 != 0) std::memcpy(place(K - 1), row + (K - 1) * 2, 2);
}

void pack_q8(std::byte* to, std::int64_t n, const std::byte* row, std::int64_t K) {
  for (std::int64_t s = 0; s < K / kStep; ++s) {
    const std::byte* block = row + s * Q8_0::kInfo.bytes;
    std::byte* step = to + kStepsQ8.at(s);
    std::memcpy(step + n * 2, block, 2);
    std::byte* tile = step + kHead + n / 16 * (kPanel * kStep / 2);
    for (int quad = 0; quad < kStep / 4; ++quad)
      std::memcpy(tile + quad * 64 + n % 16 * 4, block + 2 + quad * 4, 4);
  }
}

// The largest bf16 that times each of these scales is at most `most`; of no scale 1, of a scale
// that is not finite NaN.
std::uint16_t inverse_of(const std::byte* blocks, std::int64_t count, std::int64_t bytes,
                         float most) {
  float largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint16_t half;
    std::memcpy(&half, blocks + i * bytes, 2);
    const float scale = std::abs(fp16_to_float(half));
    if (!std::isfinite(scale)) return 0x7FC0;
    largest = std::max(largest, scale);
  }
  return static_cast<std::uint16_t>(
      std::bit_cast<std::uint32_t>(largest == 0 ? 1 : most / largest) >> 16);
}

void pack_q4(std::byte* to, std::int64_t n, const std::byte* row, std::int64_t K) {
  const std::int64_t steps = K / kStep;
  for (std::int64_t s = 0; s < steps; ++s) {
    if (s % kSuper == 0) {
      const std::uint16_t inverse =
          inverse_of(row + s * Q4_0::kInfo.bytes, std::min<std::int64_t>(kSuper, steps - s),
                     Q4_0::kInfo.bytes, 495);
      std::memcpy(to + kStepsQ4.super_at(s) + n * 2, &inverse, 2);
    }
    Q4_0::Block b;
    std::memcpy(&b, row + s * Q4_0::kInfo.bytes, sizeof b);
    std::byte* step = to + kStepsQ4.at(s);
    std::memcpy(step + n * 2, &b.d, 2);
    Levels levels;
    std::memcpy(&levels, b.q, 16);
    for (int e = 0; e < 2; ++e) levels.eight[e + 2] = levels.eight[e] >> 4;
    put_nibbles(step + kHead + n / 16 * kNibbleTile, n % 16, levels);
  }
}

// q4_k and q5_k: Format is one of them.
template <typename Format>
void pack_with_mins(std::byte* to, std::int64_t n, const std::byte* row, std::int64_t K,
                    StepLayout layout) {
  typename Format::Block b;
  for (std::int64_t s = 0; s < K / kStep; ++s) {
    int scale = 0, min = 0, j = static_cast<int>(s % kSuper);
    std::byte *super = to + layout.super_at(s), *step = to + layout.at(s);
    if (j == 0) {
      std::memcpy(&b, row + s / kSuper * Format::kInfo.bytes, sizeof b);
      std::memcpy(super + n * 2, &b.d, 2);
      std::memcpy(super + kPanel * 2 + n * 2, &b.dmin, 2);
    }
    detail::unpack_k_scale(b.scales, j, scale, min);
    step[n] = static_cast<std::byte>(scale);
    step[kPanel + n] = static_cast<std::byte>(min);
    put_nibbles(step + kHead + n / 16 * kNibbleTile, n % 16,
                levels_of(b.q + 32 * (j / 2), j % 2 * 4, 15));
    if constexpr (requires { b.high; }) {
      Levels fifths = levels_of(b.high, j, 1);
      for (std::uint64_t& x : fifths.eight) x <<= 4;
      put_fifths(step + kHead + 2 * kNibbleTile + n / 16 * kFifthTile, n % 16, fifths);
    }
  }
}

void pack_q6k(std::byte* to, std::int64_t n, const std::byte* row, std::int64_t K) {
  Q6_K::Block b;
  for (std::int64_t s = 0; s < K / kStep; ++s) {
    std::byte* step = to + kStepsQ6K.at(s);
    int j = static_cast<int>(s % kSuper);
    if (j == 0) {
      std::memcpy(&b, row + s / kSuper * Q6_K::kInfo.bytes, sizeof b);
      std::memcpy(to + kStepsQ6K.super_at(s) + n * 2, &b.d, 2);
    }
    for (int half = 0; half < 2; ++half)
      step[half * kPanel + n] = static_cast<std::byte>(b.scales[2 * j + half]);
    put_nibbles(step + kHead + n / 16 * kNibbleTile, n % 16,
                levels_of(b.low + 64 * (j / 4) + 32 * (j & 1), j % 4 < 2 ? 0 : 4, 15));
    Levels sixths = levels_of(b.high + 32 * (j / 4), j % 4 * 2, 3);
    for (std::uint64_t& x : sixths.eight) x <<= 4;
    put_sixths(step + kHead + 2 * kNibbleTile + n / 16 * kSixthTile, n % 16, sixths);
  }
}

// The largest of the 32 halves at p, without their signs.
float largest_half(const std::byte* p) {
  std::uint16_t bits[kPanel], largest = 0;
  std::memcpy(bits, p, sizeof bits);
  for (std::uint16_t b : bits) largest = std::max<std::uint16_t>(largest, b & 0x7FFF);
  return fp16_to_float(largest);
}

// What no weight of a q8_0 panel exceeds: its largest scale times the largest level.
float largest_weight(const std::byte* panel, std::int64_t steps) {
  float largest = 0;
  for (std::int64_t s = 0; s < steps; ++s)
    largest = std::max(largest, largest_half(panel + kStepsQ8.at(s)) * 128);
  return largest;
}

}  // namespace

Layout PackedWeight::layout_of(DType dtype) {
  if (dtype == DType::kF32) return Layout::kF32;
  if (dtype == DType::kF16 || dtype == DType::kBF16) return Layout::k16;
  if (dtype == Q8_0::kInfo.dtype) return Layout::kQ8;
  if (dtype == Q4_0::kInfo.dtype) return Layout::kQ4;
  if (dtype == Q4_K::kInfo.dtype) return Layout::kQ4K;
  if (dtype == Q5_K::kInfo.dtype) return Layout::kQ5K;
  if (dtype == Q6_K::kInfo.dtype) return Layout::kQ6K;
  return Layout::kRows;
}

Arithmetic arithmetic_of(DType dtype, Isa isa) {
  switch (PackedWeight::layout_of(dtype)) {
    case Layout::kRows:
      return Arithmetic::kRows;
    case Layout::kQ8:
      return isa == Isa::kAmx ? Arithmetic::kAmx : Arithmetic::kBytes;
    case Layout::kQ4:
    case Layout::kQ4K:
    case Layout::kQ5K:
    case Layout::kQ6K:
      return isa == Isa::kAmx ? Arithmetic::kAmxIntegers : Arithmetic::kBytes;
    case Layout::k16:
      if (dtype != DType::kBF16 || isa < Isa::kBf16) return Arithmetic::kFp32;
      return isa == Isa::kAmx ? Arithmetic::kAmx : Arithmetic::kBf16;
    case Layout::kF32:
      break;
  }
  return Arithmetic::kFp32;
}

std::int64_t PackedWeight::size_of(DType dtype, std::int64_t rows, std::int64_t cols) {
  return round_up(rows, kPanel) / kPanel * panel_bytes_of(layout_of(dtype), cols);
}

PackedWeight::PackedWeight(const MatrixSource& m, Buffer buffer, WeightUse use)
    : Weight(m.rows(), m.cols, m.dtype,
             layout_of(m.dtype) == Layout::kRows
                 ? m.rows() * format_bytes(find_format(m.dtype)->info, m.cols)
                 : size_of(m.dtype, m.rows(), m.cols)),
      layout_(layout_of(m.dtype)),
      use_(use),
      panel_bytes_(panel_bytes_of(layout_, m.cols)),
      buffer_(std::move(buffer)),
      data_(static_cast<std::byte*>(buffer_.data())) {
  if (layout_ == Layout::kRows) source_ = m;
}

void PackedWeight::pack_panel(const MatrixSource& m, std::int64_t p) {
  std::byte* to = data_ + p * panel_bytes_;
  std::int64_t K = cols();
  for (std::int64_t n = 0; n < kPanel && p * kPanel + n < rows(); ++n) {
    const std::byte* row = m.row_data[p * kPanel + n];
    switch (layout_) {
      case Layout::kF32:
        for (std::int64_t k = 0; k < K; ++k) std::memcpy(to + (k * kPanel + n) * 4, row + k * 4, 4);
        break;
      case Layout::k16:
        pack_16(to, n, row, K);
        break;
      case Layout::kQ8:
        pack_q8(to, n, row, K);
        break;
      case Layout::kQ4:
        pack_q4(to, n, row, K);
        break;
      case Layout::kQ4K:
        pack_with_mins<Q4_K>(to, n, row, K, kStepsQ4K);
        break;
      case Layout::kQ5K:
        pack_with_mins<Q5_K>(to, n, row, K, kStepsQ5K);
        break;
      case Layout::kQ6K:
        pack_q6k(to, n, row, K);
        break;
      case Layout::kRows:
        break;
    }
  }
  if (layout_ != Layout::kQ8) return;
  const float found = largest_weight(to, steps());
  float before = largest_.load();
  while (found > before && !largest_.compare_exchange_weak(before, found)) {
  }
}

int PackedWeight::power() const {
  int exponent = 0;  // largest < 2^exponent
  if (float largest = largest_.load(); largest > 0 && std::isfinite(largest))
    std::frexp(largest, &exponent);
  return std::clamp(15 - exponent, -14, kMaxPower);
}

TableWeight::TableWeight(MatrixSource source)
    : Weight(source.rows(), source.cols, source.dtype,
             source.rows() * format_bytes(find_format(source.dtype)->info, source.cols)),
      source_(std::move(source)) {}

}  // namespace vitrine::cpu
