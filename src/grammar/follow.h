// The bytes that may follow a rule (FOLLOW sets).
#pragma once

#include <bitset>
#include <vector>

#include "grammar/machine.h"

namespace vitrine::grammar {

using ByteSet = std::bitset<256>;

// By rule: the bytes that can follow it, over all callers. Conditions of actions are assumed to
// hold, so the sets may be too large, never too small.
std::vector<ByteSet> bytes_after_rules(const Machine& machine);

// States that `byte` can lead to from a narrow state (may be too many as well).
std::vector<StateId> states_after(const Machine& machine, std::uint8_t byte);

}  // namespace vitrine::grammar
