// What a backend measures, as plain numbers.
#pragma once

#include <cstdint>

namespace vitrine {

// When a step ran, by the device's own clock; zero where it has none.
struct StepTimes {
  std::int64_t busy_ns = 0;  // from its first op to its last
  std::int64_t idle_ns = 0;  // between the end of the step before it and its first op
};

// What the machine can do, measured.
struct Peak {
  double read_gb_s = 0;  // memory, read only
  double gflop_s = 0;    // of the instruction that multiplies weights of the type asked for
};

// What the calls of one op took together, on the host's clock. On an asynchronous device that is the
// time to queue them.
struct OpTime {
  const char* op;
  std::int64_t calls;
  double seconds;
};

// What products cost. One op is one pass over each of its matrices, however many rows there are.
struct Work {
  double flops = 0;               // 2 * T * N * K for a product
  std::int64_t weight_bytes = 0;  // Weight::bytes() for a pass

  Work& operator+=(const Work& other) {
    flops += other.flops, weight_bytes += other.weight_bytes;
    return *this;
  }
};

}  // namespace vitrine
