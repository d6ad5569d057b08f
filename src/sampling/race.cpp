#include "sampling/race.h"

namespace vitrine {

std::vector<Run> tell_race(std::span<const Candidate> candidates, const DrawKey& key) {
  std::vector<Run> runs;
  runs.reserve(candidates.size());
  for (const Candidate& c : candidates) {
    const double noise = id_noise(key, block_noise(key, c.id / kRaceBlock), c.id);
    runs.push_back({c.id, c.weight, noise, noise / static_cast<double>(c.weight)});
  }
  return runs;
}

}  // namespace vitrine
