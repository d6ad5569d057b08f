// How a token is drawn, on the host (sampling/race.h) and on devices (Ops::draw): by a race.
//
// Every candidate has a noise E, exponentially distributed, and an integer weight w
// (draw_weight.h); the least time E / w wins, ties by logit, then by id. Candidate i wins with
// probability w_i / sum of w: "Gumbel-max", without the logarithms of the weights.
//
// E is a function of (seed, choice, position, id) alone. What else may be drawn, and in which order
// candidates are looked at, changes nothing; and two models that see the same noise mostly draw the
// same token (arXiv 2408.07978), which is what verifying a draft lives from.
//
// A wide vocabulary has no time for a random number for each id. So the noise of 64 neighbouring
// ids is made in two steps: their least value M (exponential, divided by 64) and which of them has
// it (uniform); each of the others is M plus an exponential number of its own. That is the
// distribution of 64 independent exponential numbers, because they have no memory. A block whose
// M / (greatest weight) already loses is skipped: one random number instead of 64.
//
// Integers and IEEE operations without contraction only: host and device, scalar and vector code
// give the same bits. A change of anything here changes which token a seed gives.
#pragma once

#include <limits>

#include "base/draw_weight.h"
#include "base/philox.h"

namespace vitrine {

// Which noise: the seed of the request, the index of the choice in it, and the index in its sequence
// of the token to be drawn, < 2^56.
struct DrawKey {
  std::uint64_t seed = 0;
  std::uint64_t position = 0;
  std::uint32_t choice = 0;
};

// What a random number is for; each use has its own.
enum class RandomStream : std::uint32_t { kBlock = 1, kId = 2, kCoin = 3 };

constexpr PhiloxCounter random_bits(const DrawKey& key, std::uint32_t index, RandomStream stream) {
  return philox4x32_10(
      {static_cast<std::uint32_t>(key.position), index, key.choice,
       static_cast<std::uint32_t>(key.position >> 32) << 8 | static_cast<std::uint32_t>(stream)},
      key.seed);
}

// -log(1 - u), where u = (n + 1/2) * 2^-52 and n the top 52 of 64 uniform bits: an exponentially
// distributed number, fine where it is small. Branch-free; relative error 1e-13.
constexpr double exponential(std::uint64_t bits) {
  constexpr std::uint64_t kOne = 0x3FF0000000000000, kSqrtHalf = 0x3FE6A09E667F3BCD;
  constexpr double kLn2 = 0x1.62e42fefa39efp-1;
  // 1 - u, exactly; then as 2^e * m with m from sqrt(1/2) to sqrt(2).
  const double v = (2.0 - std::bit_cast<double>(kOne | bits >> 12)) - 0x1p-53;
  const std::uint64_t shifted = std::bit_cast<std::uint64_t>(v) + (kOne - kSqrtHalf);
  const double m = std::bit_cast<double>((shifted & 0x000FFFFFFFFFFFFF) + kSqrtHalf);
  const double e = std::bit_cast<double>(0x4330000000000000 | shifted >> 52) - (0x1p52 + 1023);
  // log(m) = 2 artanh(s)
  const double s = (m - 1.0) / (m + 1.0), z = s * s;
  double p = 1.0 / 17;
  p = p * z + 1.0 / 15;
  p = p * z + 1.0 / 13;
  p = p * z + 1.0 / 11;
  p = p * z + 1.0 / 9;
  p = p * z + 1.0 / 7;
  p = p * z + 1.0 / 5;
  p = p * z + 1.0 / 3;
  p = p * z + 1.0;
  return -(e * kLn2 + (s + s) * p);
}

inline constexpr std::int32_t kRaceBlock = 64;

// Of the ids [64 * block, 64 * block + 64), in the vocabulary or not.
struct BlockNoise {
  double least;
  std::int32_t id;  // which has it
};

constexpr std::uint64_t low_bits(const PhiloxCounter& x) { return std::uint64_t{x.b} << 32 | x.a; }

constexpr BlockNoise block_noise(const DrawKey& key, std::int32_t block) {
  const PhiloxCounter x = random_bits(key, static_cast<std::uint32_t>(block), RandomStream::kBlock);
  return {exponential(low_bits(x)) * (1.0 / kRaceBlock),
          block * kRaceBlock + static_cast<std::int32_t>(x.c >> 26)};
}

// E of an id of the block.
constexpr double id_noise(const DrawKey& key, const BlockNoise& block, std::int32_t id) {
  if (id == block.id) return block.least;
  const PhiloxCounter x = random_bits(key, static_cast<std::uint32_t>(id), RandomStream::kId);
  return block.least + exponential(low_bits(x));
}

// Who leads; id -1: nobody yet.
struct Leader {
  double time = std::numeric_limits<double>::infinity();
  float logit = 0;
  std::int32_t id = -1;
};

// The order of the race is total, so the leaders of any parts give the leader of all.
constexpr Leader ahead(const Leader& a, const Leader& b) {
  if (a.id < 0 || b.id < 0) return a.id < 0 ? b : a;
  if (a.time != b.time) return a.time < b.time ? a : b;
  if (a.logit != b.logit) return a.logit > b.logit ? a : b;
  return a.id < b.id ? a : b;
}

// False: a candidate with this weight and at least this noise certainly comes after `time`. The
// margin covers the roundings of the product and of noise / weight.
constexpr bool may_lead(double time, double noise, std::uint64_t weight) {
  return weight > 0 && noise <= time * static_cast<double>(weight) * (1 + 0x1p-40);
}

// Enters an id of the block.
constexpr Leader race(const Leader& leader, const DrawKey& key, const BlockNoise& block,
                      std::uint64_t weight, float logit, std::int32_t id) {
  if (!may_lead(leader.time, block.least, weight)) return leader;
  return ahead(leader, {id_noise(key, block, id) / static_cast<double>(weight), logit, id});
}

}  // namespace vitrine
