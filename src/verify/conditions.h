// Under what `vitrine verify` asks its requests again. A condition is a line of a table; what must have happened for it
// to count is read from the accounts of the requests.
#pragma once

#include <span>
#include <string>

#include "engine/info.h"
#include "engine/options.h"
#include "verify/answer.h"

namespace vitrine::verify {

inline constexpr int kTogether = 8;  // requests that are submitted side by side
inline constexpr int kChunk = 24;    // tokens of a step, where prompts are cut

// What happened to the requests of a condition, summed or at most.
struct Happened {
  int batch = 0;        // sequences in a step
  int chunks = 0;       // steps of a prompt
  int preemptions = 0;  // sum
  int forks = 0;        // choices that shared the computed prompt
  std::int64_t cached = 0, drafted = 0, accepted = 0;
  void add(const Account& account);
};

// Whether the condition came about, and what tells so.
struct Evidence {
  bool enough = false;
  std::string text;
};

// How an engine runs the requests of one condition after the other.
struct Condition {
  const char* name;
  const char* help;
  // What differs from the plain engine: one sequence, no prefix cache, no speculation, no delay.
  void (*set)(EngineOptions& options) = nullptr;
  // Why it cannot be here, in words; null: it can.
  const char* (*missing)(const EngineOptions& options, const EngineInfo& info) = nullptr;
  // From what happened and the engine's options.
  Evidence (*seen)(const Happened& happened, const EngineOptions& options, const EngineInfo& info);
  bool together = true;     // kTogether requests at once; else one after the other
  bool single = false;      // choices are requests of their own
  bool only_forks = false;  // only requests with several choices
  bool scattered = false;   // requests come at any time, and again at once
  int rounds = 1;           // how often each is asked
};

// In the order of the table. The first is the plain engine itself, which asks everything twice.
std::span<const Condition> all_conditions();
const Condition* find_condition(std::string_view name);  // null when there is none

// Of the plain engine, and of the engine of a condition.
EngineOptions plain_options(const EngineOptions& asked, int context);
EngineOptions options_of(const Condition& condition, const EngineOptions& plain);

}  // namespace vitrine::verify
