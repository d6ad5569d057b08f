#include "base/memory_reserve.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>
#include <thread>

namespace vitrine {
namespace {

// Each piece is enough for a coroutine, a handler or a line of text.
constexpr std::size_t kPiece = 8 << 10;
constinit std::array<void*, 64> pieces{};
constinit std::atomic<std::size_t> held{0};  // changed under the mutex
constinit std::mutex mutex;
thread_local Shortage shortage = Shortage::kThrow;

bool free_piece() {
  std::lock_guard lock(mutex);
  if (held == 0) return false;
  std::free(pieces[--held]);
  return true;
}

constinit std::atomic<std::uint64_t> times_full{
    0};  // that the reserve was filled to the last piece

// Waits, and says whether it is worth trying again: not when memory has been short for kPatience.
bool wait_for_memory() {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPatience{10'000}, kPause{1};
  // Of this thread; a reserve that was full since then has ended the shortage.
  thread_local Clock::time_point short_since;
  thread_local std::uint64_t full_before = UINT64_MAX;
  const auto now = Clock::now();
  if (full_before != times_full) full_before = times_full, short_since = now;
  std::this_thread::sleep_for(kPause);
  return shortage == Shortage::kInsist || now - short_since < kPatience;
}

// Called by operator new when there is no memory; it tries again when this returns.
void give_piece() {
  if (shortage == Shortage::kThrow || (!free_piece() && !wait_for_memory())) throw std::bad_alloc();
}

}  // namespace

void fill_memory_reserve() noexcept {
  if (held.load(std::memory_order_relaxed) == pieces.size()) return;
  std::lock_guard lock(mutex);
  std::set_new_handler(give_piece);
  while (held < pieces.size()) {
    void* piece = std::malloc(kPiece);
    if (piece == nullptr) return;
    pieces[held++] = piece;
  }
  ++times_full;
}

UseMemoryReserve::UseMemoryReserve(Shortage now) : before_(shortage) { shortage = now; }
UseMemoryReserve::~UseMemoryReserve() { shortage = before_; }

}  // namespace vitrine
