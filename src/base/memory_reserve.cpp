#include "base/memory_reserve.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace vitrine {
namespace {

// Each piece is enough for a coroutine, a handler or a line of text.
constexpr std::size_t kPiece = 8 << 10;
constinit std::array<void*, 64> pieces{};
constinit std::atomic<std::size_t> held{0};  // changed under the mutex
constinit std::mutex mutex;
thread_local bool may_use = false;

bool free_piece() {
  std::lock_guard lock(mutex);
  if (held == 0) return false;
  std::free(pieces[--held]);
  return true;
}

using Clock = std::chrono::steady_clock;
thread_local Clock::time_point short_since;  // 0: memory is not short

// Waits, and says whether it is worth trying again: not when memory has been short for kPatience.
bool wait_for_memory() {
  constexpr std::chrono::milliseconds kPatience{10'000}, kPause{1};
  const auto now = Clock::now();
  if (short_since == Clock::time_point()) short_since = now;
  if (now - short_since > kPatience) return false;
  std::this_thread::sleep_for(kPause);
  return true;
}

// Called by operator new when there is no memory; it tries again when this returns.
void give_piece() {
  if (!may_use || (!free_piece() && !wait_for_memory())) throw std::bad_alloc();
}

}  // namespace

void fill_memory_reserve() noexcept {
  if (held.load(std::memory_order_relaxed) == pieces.size()) {
    short_since = {};
    return;
  }
  std::lock_guard lock(mutex);
  std::set_new_handler(give_piece);
  while (held < pieces.size()) {
    void* piece = std::malloc(kPiece);
    if (piece == nullptr) return;
    pieces[held++] = piece;
  }
  short_since = {};
}

UseMemoryReserve::UseMemoryReserve(bool use) : before_(may_use) { may_use = use; }
UseMemoryReserve::~UseMemoryReserve() { may_use = before_; }

}  // namespace vitrine
