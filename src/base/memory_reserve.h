// Memory that is kept back for threads whose failure would be everybody's: those of sockets, whose
// library queues its work in memory it asks for in destructors. A request that finds no memory fails
// alone; these threads get through from the reserve and, when that is empty, wait a while for others to
// give memory back.
#pragma once

#include <chrono>
#include <new>
#include <thread>

namespace vitrine {

// Fills the reserve, as far as there is memory, and from the first call on has operator new use it.
// Cheap while it is full. Call it again when there may be memory.
void fill_memory_reserve() noexcept;

// While it lives, operator new takes from the reserve before it throws, on this thread; or, with false,
// throws at once: for large memory that one request needs.
class UseMemoryReserve {
 public:
  explicit UseMemoryReserve(bool use = true);
  ~UseMemoryReserve();
  UseMemoryReserve(const UseMemoryReserve&) = delete;

 private:
  const bool before_;
};

// Until there is memory for it: for what somebody waits for and cannot be told to have failed. With
// the reserve, since a strand whose post() throws halfway never runs again.
template <typename F>
void insist(F f) {
  UseMemoryReserve reserve;
  for (;;) try {
      return f();
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

}  // namespace vitrine
