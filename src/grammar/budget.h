// What one compilation may cost. Counted in steps rather than seconds, so that the same grammar is
// accepted or refused on every machine.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace vitrine::grammar {

struct Budget {
  std::uint64_t work = std::uint64_t{1} << 25;  // elementary steps: up to 0.4 s
  std::uint64_t states = std::uint64_t{1} << 16;
  std::uint64_t used = 0;
  std::string what = "grammar";  // for errors

  bool spend(std::uint64_t steps) {
    used += steps;
    return used <= work;
  }
  Error exhausted() const {
    return make_error(ErrorCode::kTooLarge,
                      "{}: too large: its automaton needs more than {} states or {} steps to build",
                      what, states, work);
  }
};

}  // namespace vitrine::grammar
