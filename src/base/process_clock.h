// The clock of everything that is told about requests and steps: the steady clock, in nanoseconds since the
// process began. Exact in the numbers of JavaScript for 104 days.
#pragma once

#include <chrono>
#include <cstdint>

namespace vitrine {

std::int64_t process_ns(std::chrono::steady_clock::time_point at);
inline std::int64_t process_ns() { return process_ns(std::chrono::steady_clock::now()); }

}  // namespace vitrine
