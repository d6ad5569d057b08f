#include "base/process_clock.h"

namespace vitrine {
namespace {

// A stamp of 0 stands for "not yet", so that even the first one is later.
const std::chrono::steady_clock::time_point kBegan =
    std::chrono::steady_clock::now() - std::chrono::nanoseconds(1);

}  // namespace

std::int64_t process_ns(std::chrono::steady_clock::time_point at) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(at - kBegan).count();
}

}  // namespace vitrine
