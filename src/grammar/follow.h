// What may come right after a rule.
#pragma once

#include <bitset>
#include <vector>

#include "grammar/machine.h"

namespace vitrine::grammar {

using ByteSet = std::bitset<256>;

// By rule: the bytes that can be the next when it has ended, whoever called it. Conditions of
// actions are taken to hold, so there may be some too many.
std::vector<ByteSet> bytes_after_rules(const Machine& machine);

// States in which a text can stand after a byte that came in a narrow state (some too many too).
std::vector<StateId> states_after(const Machine& machine, std::uint8_t byte);

}  // namespace vitrine::grammar
