// The draw's race (base/draw_race.h) over a row.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/draw_race.h"

namespace vitrine {

struct Candidate;

// The winner among all ids; the weight of a logit x is weight((max - x) * scale). No logit is NaN or
// above max.
Leader race_all(std::span<const float> logits, double max, double scale, const DrawKey& key);

// The winner among weighed candidates, in any order.
Leader race_some(std::span<const Candidate> candidates, const DrawKey& key);

// For many races between the same candidates.
class ManyRaces {
 public:
  // Weighed, by ascending id; must outlive it.
  explicit ManyRaces(std::span<const Candidate> candidates);
  Leader race(const DrawKey& key) const;

 private:
  struct Part {  // the candidates of one block of ids
    std::int32_t block;
    std::uint64_t most;  // the greatest weight
    std::span<const Candidate> candidates;
  };
  std::vector<Part> parts_;
};

// A candidate's run, for people who want to see it.
struct Run {
  std::int32_t id;
  float logit;
  std::uint64_t weight;
  double noise;  // E
  double time;   // E / weight; infinite without weight
};

// The runs of weighed candidates in the order of arriving: the first is the token that
// Candidates::draw gives.
std::vector<Run> tell_race(std::span<const Candidate> candidates, const DrawKey& key);

}  // namespace vitrine
