// What was measured of the machine, as JSON.
#pragma once

#include "base/json.h"
#include "engine/engine.h"

namespace vitrine {

inline json::object peak_json(const Peak& peak) {
  return {{"gflop_s", peak.gflop_s}, {"read_gb_s", peak.read_gb_s}};
}

}  // namespace vitrine
