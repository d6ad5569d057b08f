// Why a sequence waits in the queue.
#pragma once

#include <cstdint>

namespace vitrine {

// What the first of the queue was waiting for.
enum class Wait : std::uint8_t {
  kNone,    // nothing: it was admitted at once
  kSeats,   // all are taken
  kPages,   // there is no room for its prompt
  kPolicy,  // the static policy's batch is not full, or the one before it still runs
};

// Why the first of the queue was not admitted before a step.
struct Blocked {
  Wait reason = Wait::kNone;
  std::uint64_t sequence = 0;     // the first
  int needed = 0, available = 0;  // kPages: see QueueAccount
  bool operator==(const Blocked&) const = default;
};

}  // namespace vitrine
