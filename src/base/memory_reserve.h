// Memory that is kept back for threads whose failure would be everybody's: those of sockets, whose
// library queues its work in memory it asks for in destructors. A request that finds no memory fails
// alone; these threads get through from the reserve and, when that is empty, wait a while for others to
// give memory back.
#pragma once

namespace vitrine {

// Fills the reserve, as far as there is memory, and from the first call on has operator new use it.
// Cheap while it is full. Call it again when there may be memory.
void fill_memory_reserve() noexcept;

// What operator new does on a thread when there is no memory.
enum class Shortage {
  kThrow,   // at once
  kWait,    // take from the reserve, then wait a while for memory, then throw
  kInsist,  // take from the reserve, then wait for as long as it takes
};

// While it lives, on this thread.
class UseMemoryReserve {
 public:
  explicit UseMemoryReserve(Shortage shortage = Shortage::kWait);
  ~UseMemoryReserve();
  UseMemoryReserve(const UseMemoryReserve&) = delete;

 private:
  const Shortage before_;
};

// Until there is memory for it: for what somebody waits for and cannot be told to have failed. It
// never throws for want of memory, since a strand whose post() throws halfway never runs again.
template <typename F>
void insist(F f) {
  UseMemoryReserve reserve(Shortage::kInsist);
  f();
}

}  // namespace vitrine
