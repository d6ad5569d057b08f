// The draw's race (base/draw_race.h) over the candidates of a row.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/draw_race.h"
#include "sampling/candidates.h"

namespace vitrine {

// A candidate's run, for people who want to see it.
struct Run {
  std::int32_t id;
  std::uint64_t weight;
  double noise;  // E
  double time;   // E / weight; infinite without weight
};

// The runs of weighed candidates (Candidates::sorted_first), in their order. The one with the least
// time is the token that Candidates::draw gives, if it is among them.
std::vector<Run> tell_race(std::span<const Candidate> candidates, const DrawKey& key);

}  // namespace vitrine
