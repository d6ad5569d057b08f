// What a process still says on standard error when it aborts: because of a failed VT_CHECK, an exception that
// nobody catches, std::abort().
#pragma once

namespace vitrine {

class LastWords {
 public:
  // Called by the thread that aborts, in a signal handler, whatever it and the others were at: must not take a lock
  // and must not need memory.
  virtual void say() noexcept = 0;

 protected:
  ~LastWords() = default;
};

// There is one at a time: the one that was set last. Whoever sets it drops it before it is gone.
void set_last_words(LastWords& words);
void drop_last_words(LastWords& words);

}  // namespace vitrine
