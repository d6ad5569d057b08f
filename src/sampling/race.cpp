#include "sampling/race.h"

#include <immintrin.h>

#include <algorithm>

#include "base/cpu_features.h"
#include "sampling/candidates.h"

#define VT_AVX512 [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")]]
#define VT_INLINE [[gnu::always_inline]] inline

namespace vitrine {
namespace {

constexpr std::size_t kBlock = kRaceBlock;
// Blocks whose noise is made side by side, in vectors.
constexpr std::size_t kTogether = 16;

// The compiler vectorises over arrays, not over the fields of a struct.
struct Noises {
  double least[kTogether];
  std::int32_t ids[kTogether];
  BlockNoise of(std::size_t i) const { return {least[i], ids[i]}; }
};

VT_INLINE void make_noises(Noises& out, const std::int32_t (&blocks)[kTogether],
                           const DrawKey key) {
  for (std::size_t i = 0; i < kTogether; ++i) {
    const BlockNoise noise = block_noise(key, blocks[i]);
    out.least[i] = noise.least, out.ids[i] = noise.id;
  }
}

// The greatest logit of a block.
VT_INLINE float greatest(const float* x) {
  __m256 all = _mm256_loadu_ps(x);
  for (std::size_t i = 8; i < kBlock; i += 8) all = _mm256_max_ps(all, _mm256_loadu_ps(x + i));
  __m128 four = _mm_max_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1));
  four = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
}

VT_INLINE Leader all(std::span<const float> logits, double max, double scale, const DrawKey& key) {
  const std::size_t blocks = (logits.size() + kBlock - 1) / kBlock;
  Leader leader;
  for (std::size_t first = 0; first < blocks; first += kTogether) {
    const std::size_t n = std::min(kTogether, blocks - first);
    std::int32_t numbers[kTogether];
    for (std::size_t i = 0; i < kTogether; ++i) numbers[i] = static_cast<std::int32_t>(first + i);
    Noises noises;
    make_noises(noises, numbers, key);
    float best[kTogether] = {};
    for (std::size_t i = 0; i < n; ++i) {
      const auto block = logits.subspan((first + i) * kBlock);
      best[i] = block.size() >= kBlock ? greatest(block.data())
                                       : *std::max_element(block.begin(), block.end());
    }
    std::uint64_t most[kTogether];
    for (std::size_t i = 0; i < kTogether; ++i) most[i] = weight((max - best[i]) * scale);
    for (std::size_t i = 0; i < n; ++i) {
      if (!may_lead(leader.time, noises.least[i], most[i])) continue;
      const std::size_t start = (first + i) * kBlock;
      const auto block = logits.subspan(start, std::min(kBlock, logits.size() - start));
      std::uint64_t weights[kBlock];
      for (std::size_t j = 0; j < block.size(); ++j) weights[j] = weight((max - block[j]) * scale);
      for (std::size_t j = 0; j < block.size(); ++j)
        leader = race(leader, key, noises.of(i), weights[j], block[j],
                      static_cast<std::int32_t>(start + j));
    }
  }
  return leader;
}

VT_INLINE Leader some(std::span<const Candidate> candidates, const DrawKey& key) {
  Leader leader;
  for (std::size_t first = 0; first < candidates.size(); first += kTogether) {
    const auto few = candidates.subspan(first, std::min(kTogether, candidates.size() - first));
    std::int32_t blocks[kTogether] = {};
    for (std::size_t i = 0; i < few.size(); ++i) blocks[i] = few[i].id / kRaceBlock;
    Noises noises;
    make_noises(noises, blocks, key);
    for (std::size_t i = 0; i < few.size(); ++i)
      leader = race(leader, key, noises.of(i), few[i].weight, few[i].logit, few[i].id);
  }
  return leader;
}

// The same operations in wider vectors: the same bits.
VT_AVX512 Leader all_avx512(std::span<const float> logits, double max, double scale,
                            const DrawKey& key) {
  return all(logits, max, scale, key);
}
VT_AVX512 Leader some_avx512(std::span<const Candidate> candidates, const DrawKey& key) {
  return some(candidates, key);
}

bool wide() {
  static const bool avx512 = cpu_features().avx512;
  return avx512;
}

}  // namespace

Leader race_all(std::span<const float> logits, double max, double scale, const DrawKey& key) {
  return wide() ? all_avx512(logits, max, scale, key) : all(logits, max, scale, key);
}

Leader race_some(std::span<const Candidate> candidates, const DrawKey& key) {
  return wide() ? some_avx512(candidates, key) : some(candidates, key);
}

ManyRaces::ManyRaces(std::span<const Candidate> candidates) {
  for (std::size_t i = 0, end; i < candidates.size(); i = end) {
    Part part{candidates[i].id / kRaceBlock, 0, {}};
    for (end = i; end < candidates.size() && candidates[end].id / kRaceBlock == part.block; ++end)
      part.most = std::max(part.most, candidates[end].weight);
    part.candidates = candidates.subspan(i, end - i);
    parts_.push_back(part);
  }
}

Leader ManyRaces::race(const DrawKey& key) const {
  Leader leader;
  for (const Part& part : parts_) {
    const BlockNoise noise = block_noise(key, part.block);
    if (!may_lead(leader.time, noise.least, part.most)) continue;
    for (const Candidate& c : part.candidates)
      leader = vitrine::race(leader, key, noise, c.weight, c.logit, c.id);
  }
  return leader;
}

std::vector<Run> tell_race(std::span<const Candidate> candidates, const DrawKey& key) {
  std::vector<Run> runs;
  runs.reserve(candidates.size());
  for (const Candidate& c : candidates) {
    const double noise = id_noise(key, block_noise(key, c.id / kRaceBlock), c.id);
    runs.push_back({c.id, c.logit, c.weight, noise, noise / static_cast<double>(c.weight)});
  }
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) {
    if (a.time != b.time) return a.time < b.time;
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  });
  return runs;
}

}  // namespace vitrine
