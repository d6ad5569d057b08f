// For blocks of eight groups of 32 weights: eight 6-bit scales and eight 6-bit minimums in 12
// bytes, and the search for a scale and minimum of 32 weights.
//   byte 0..3   scale 0..3 in bits 0-5, bits 4-5 of scale 4..7 in bits 6-7
//   byte 4..7   min 0..3 in bits 0-5,   bits 4-5 of min 4..7 in bits 6-7
//   byte 8..11  bits 0-3 of scale 4..7 in the low nibble, of min 4..7 in the high nibble
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace vitrine::detail {

constexpr void unpack_k_scale(const std::uint8_t* packed, int j, int& scale, int& min) {
  if (j < 4) {
    scale = packed[j] & 63;
    min = packed[j + 4] & 63;
  } else {
    scale = (packed[j + 4] & 15) | ((packed[j - 4] >> 6) << 4);
    min = (packed[j + 4] >> 4) | ((packed[j] >> 6) << 4);
  }
}

inline void pack_k_scale(std::uint8_t* packed, int j, int scale, int min) {
  if (j < 4) {
    packed[j] = static_cast<std::uint8_t>((packed[j] & 0xC0) | scale);
    packed[j + 4] = static_cast<std::uint8_t>((packed[j + 4] & 0xC0) | min);
  } else {
    packed[j + 4] = static_cast<std::uint8_t>((scale & 15) | ((min & 15) << 4));
    packed[j - 4] = static_cast<std::uint8_t>((packed[j - 4] & 63) | ((scale >> 4) << 6));
    packed[j] = static_cast<std::uint8_t>((packed[j] & 63) | ((min >> 4) << 6));
  }
}

// Scale and offset with w ~ scale * q - min, q in 0..levels, min >= 0: least squares over a few
// candidate scales around the range.
struct ScaleMin {
  float scale, min;
};

inline ScaleMin fit_scale_min(const float* x, int n, int levels) {
  float lo = std::min(0.0f, *std::min_element(x, x + n)), hi = *std::max_element(x, x + n);
  if (hi <= lo) return {0, -lo};
  ScaleMin best{(hi - lo) / static_cast<float>(levels), -lo};
  float best_error = INFINITY;
  for (int step = -5; step <= 5; ++step) {
    float inverse = (static_cast<float>(levels) + 0.1f * static_cast<float>(step)) / (hi - lo);
    float sq = 0, sqq = 0, sx = 0, sxq = 0;
    for (int i = 0; i < n; ++i) {
      float q = std::clamp(std::nearbyint((x[i] - lo) * inverse), 0.0f, static_cast<float>(levels));
      sq += q, sqq += q * q, sx += x[i], sxq += x[i] * q;
    }
    auto count = static_cast<float>(n);
    float det = count * sqq - sq * sq;
    if (det <= 0) continue;
    float scale = (count * sxq - sq * sx) / det, offset = (sx - scale * sq) / count;
    if (offset > 0) offset = 0, scale = sxq / sqq;
    if (scale <= 0) continue;
    float error = 0;
    for (int i = 0; i < n; ++i) {
      float q =
          std::clamp(std::nearbyint((x[i] - offset) / scale), 0.0f, static_cast<float>(levels));
      float e = scale * q + offset - x[i];
      error += e * e;
    }
    if (error < best_error) best_error = error, best = {scale, -offset};
  }
  return best;
}

// Fits the eight groups of a 256-weight block and packs the two super-scales and twelve bytes.
// levels[i] receives the level of each weight, 0..max_level.
inline void encode_k_groups(const float* x, int max_level, float& d, float& dmin,
                            std::uint8_t* packed, std::uint8_t* levels,
                            float (*round_half)(float)) {
  ScaleMin fits[8];
  float top_scale = 0, top_min = 0;
  for (int j = 0; j < 8; ++j) {
    fits[j] = fit_scale_min(x + 32 * j, 32, max_level);
    top_scale = std::max(top_scale, fits[j].scale);
    top_min = std::max(top_min, fits[j].min);
  }
  d = round_half(top_scale / 63);
  dmin = round_half(top_min / 63);
  for (int j = 0; j < 12; ++j) packed[j] = 0;
  for (int j = 0; j < 8; ++j) {
    auto level6 = [](float value, float unit) {
      return unit > 0 ? std::clamp(static_cast<int>(std::lround(value / unit)), 0, 63) : 0;
    };
    pack_k_scale(packed, j, level6(fits[j].scale, d), level6(fits[j].min, dmin));
  }
  for (int j = 0; j < 8; ++j) {
    int scale = 0, min = 0;
    unpack_k_scale(packed, j, scale, min);
    float unit = d * static_cast<float>(scale), offset = dmin * static_cast<float>(min);
    for (int i = 0; i < 32; ++i) {
      float level = unit > 0 ? std::nearbyint((x[32 * j + i] + offset) / unit) : 0;
      levels[32 * j + i] =
          static_cast<std::uint8_t>(std::clamp(level, 0.0f, static_cast<float>(max_level)));
    }
  }
}

}  // namespace vitrine::detail
