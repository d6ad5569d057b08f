#include "base/memory_reserve.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>

namespace vitrine {
namespace {

// Each piece is enough for a coroutine, a handler or a line of text.
constexpr std::size_t kPiece = 8 << 10;
constinit std::array<void*, 64> pieces{};
constinit std::atomic<std::size_t> held{0};  // changed under the mutex
constinit std::mutex mutex;
thread_local bool may_use = false;

// Called by operator new when there is no memory; it tries again when this returns.
void give_piece() {
  if (!may_use) throw std::bad_alloc();
  std::lock_guard lock(mutex);
  if (held == 0) throw std::bad_alloc();
  std::free(pieces[--held]);
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
}

UseMemoryReserve::UseMemoryReserve() : before_(may_use) { may_use = true; }
UseMemoryReserve::~UseMemoryReserve() { may_use = before_; }

}  // namespace vitrine
