// Steps as a trace that ui.perfetto.dev opens (Chrome's JSON format).
#pragma once

#include <map>
#include <span>
#include <string>

#include "base/json.h"
#include "engine/step_record.h"

namespace vitrine {

// The process "engine" has a track of steps with their parts nested in them, and counters of rows, of
// sequences that run and wait, and of pages. The process "requests" has a track for each sequence, named
// by `names` where that knows it, with what it had in each step. Times are microseconds since the first
// step; they ascend on every track.
json::object perfetto_json(std::span<const StepRecord> steps,
                           const std::map<std::uint64_t, std::string>& names);

}  // namespace vitrine
