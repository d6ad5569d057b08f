// A candidate's share of the probability as a fixed-point integer: round(2^43 * exp(-nats)), where
// `nats` is how far its logit lies below the best one. Integer sums do not depend on their order,
// so the cut of top-p and the token drawn are exact functions of the logits: a partial selection, a
// full sort and a vectorised loop all give the same token.
//
// What is lost: shares under 2^-44 of the best count as nothing. Over 2^20 tokens that is at most
// 2^-24 of the mass.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace vitrine {

inline constexpr int kWeightBits = 43;
inline constexpr std::uint64_t kWeightOne = std::uint64_t{1} << kWeightBits;
// kMaxVocab weights of at most kWeightOne each sum below 2^64.
inline constexpr std::size_t kMaxVocab = std::size_t{1} << 20;

// min(x, cap) for x, cap >= 0. Compared as integers, which have the same order for non-negative
// doubles: a comparison of doubles may trap on NaN, so the compiler keeps it as a branch and the
// loop around it stays scalar.
constexpr double capped(double x, double cap) {
  return std::bit_cast<double>(
      std::min(std::bit_cast<std::int64_t>(x), std::bit_cast<std::int64_t>(cap)));
}

// nats >= 0, infinity allowed, never NaN. Branch-free so that loops over it vectorise; each
// operation is IEEE, so vector and scalar code give the same bits. Relative error of the
// exponential: 1e-11.
constexpr std::uint64_t weight(double nats) {
  constexpr double kRound = 0x1.8p52;  // adding it leaves the nearest integer in the low bits
  constexpr double kLog2E = 0x1.71547652b82fep0, kLn2 = 0x1.62e42fefa39efp-1;
  const double t = capped(nats, 32.0) * -kLog2E;
  const double shifted = t + kRound;
  const double r = (t - (shifted - kRound)) * kLn2;  // |r| <= ln(2) / 2
  double p = 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  const std::uint64_t exponent = std::bit_cast<std::uint64_t>(shifted) + (1023 + kWeightBits);
  const double scaled = p * std::bit_cast<double>(exponent << 52);
  return std::bit_cast<std::uint64_t>(scaled + 0x1p52) - std::bit_cast<std::uint64_t>(0x1p52);
}

}  // namespace vitrine
