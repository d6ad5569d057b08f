// When the bytes of an answer went out: filled in by the connection, read by anybody.
#pragma once

#include <atomic>
#include <cstdint>

namespace vitrine {

struct Written {
  // process_ns() at which the system had taken the first bytes, the last so far; 0: none.
  std::atomic<std::int64_t> first_ns{0}, last_ns{0};
  std::atomic<std::int64_t> bytes{0};  // with the head
  std::atomic<bool> done{false};       // no more will follow, whether all went out or not
};

}  // namespace vitrine
