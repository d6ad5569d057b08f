// fp16 and bf16 as bits, scalar conversions with round to nearest even.
#pragma once

#include <bit>
#include <cstdint>

namespace vitrine {

constexpr float bf16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

inline std::uint16_t float_to_bf16(float x) {
  auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<std::uint16_t>((bits >> 16) | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

constexpr float fp16_to_float(std::uint16_t bits) {
  std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  std::uint32_t exponent = (bits >> 10) & 0x1F, mantissa = bits & 0x3FF;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000 | (mantissa << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  // Zero and subnormals: mantissa * 2^-24, exact in fp32.
  float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return sign ? -magnitude : magnitude;
}

inline std::uint16_t float_to_fp16(float x) {
  auto bits = std::bit_cast<std::uint32_t>(x);
  auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000);
  bits &= 0x7FFFFFFF;
  if (bits > 0x7F800000) return sign | 0x7E00;
  if (bits >= 0x477FF000) return sign | 0x7C00;  // rounds to 65536 or more
  if (bits < 0x38800000) {                       // below the smallest normal: steps of 2^-24
    float scaled = std::bit_cast<float>(bits) * 0x1p24f;
    auto whole = static_cast<std::uint32_t>(scaled);
    float rest = scaled - static_cast<float>(whole);
    if (rest > 0.5f || (rest == 0.5f && (whole & 1))) ++whole;
    return sign | static_cast<std::uint16_t>(whole);
  }
  bits += 0xFFF + ((bits >> 13) & 1);
  return sign | static_cast<std::uint16_t>((bits - 0x38000000) >> 13);
}

}  // namespace vitrine
