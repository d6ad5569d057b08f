// What the engine knows about a request, as JSON.
#pragma once

#include <cstdint>
#include <span>

#include "base/json.h"
#include "engine/account.h"
#include "engine/stats.h"
#include "engine/step_record.h"

namespace vitrine {

// `all`: also what tells about other requests, for which an operator's key is needed.
json::object account_json(const Account& account, bool all);
json::object stamps_json(const Stamps& stamps);
// Times between tokens, from when they were committed (nanoseconds): mean, p50, p95, max, and the
// first of them one by one. Empty for fewer than two tokens.
json::object token_latency_json(std::span<const std::int64_t> times_ns);
json::object pool_json(const PoolStats& pool);
json::object sequence_json(const SequenceStats& sequence, bool all);
// Null where nobody waits.
json::value blocked_json(const Blocked& blocked);
// All of it, for operators. An entry: [id, slot, phase, first position, rows, sampled, FLOPs, bytes of K
// and V read, written].
json::object whole_step_json(const StepRecord& record);
// What the step did, and the part that the sequence of `entry` had in it. With `all`, the others in it too:
// [id, phase, rows], up to kMostCompany of them.
json::object step_json(const OwnStep& step, const StepEntry& entry, bool all);

inline constexpr std::size_t kMaxListedLatencies = 4096;
inline constexpr std::size_t kMostCompany = OwnStep::kMostLargest - 1;

}  // namespace vitrine
