// What a render may cost, and how it is counted. A render runs on one thread and its budget is that
// thread's: texts, lists and dicts charge it where they are made, copied, searched and compared, so
// that no filter or method has to remember to. Outside of a render nothing is counted.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "base/result.h"

namespace vitrine::jinja {

// Thrown inside this module only; Template turns it into an Error with line and column.
struct Failure {
  ErrorCode code;
  std::string message;
};

struct Limits {
  std::int64_t steps = 20'000'000;         // nodes evaluated, items looked at, 64 bytes copied
  std::size_t output_bytes = 64u << 20;    // of the rendered text, and of any other
  std::size_t created_bytes = 256u << 20;  // of all texts and values made on the way, freed or not
  int depth = 600;                         // of nested evaluation
  std::chrono::milliseconds time{10'000};
};

// What a render has used of its limits.
struct Usage {
  std::int64_t steps = 0;
  std::size_t bytes = 0;
};

class Budget {
 public:
  // The thread's until its end.
  explicit Budget(const Limits& limits);
  ~Budget() { current_ = before_; }
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  static Budget* current() { return current_; }
  void step(std::size_t n) {
    if ((steps_ -= static_cast<std::int64_t>(n)) < 0) fail_steps();
    if ((since_clock_ += n) > 4096) check_clock();
  }
  void make(std::size_t bytes, std::size_t text_size) {
    if (text_size > limits_.output_bytes || bytes > limits_.created_bytes - created_) fail_bytes();
    created_ += bytes;
    step(bytes / 64 + 1);
  }
  void need_room(std::size_t bytes, std::size_t text_size) const {
    if (text_size > limits_.output_bytes || bytes > limits_.created_bytes - created_) fail_bytes();
  }
  void enter() {
    if (++depth_ > limits_.depth) fail_depth();
  }
  void leave() { --depth_; }
  Usage used() const { return {limits_.steps - steps_, created_}; }

 private:
  [[noreturn]] void fail_steps() const;
  [[noreturn]] void fail_bytes() const;
  [[noreturn]] void fail_depth() const;
  void check_clock();

  // NOLINTNEXTLINE(readability-identifier-naming): a member, which clang-tidy takes for a variable.
  static constinit inline thread_local Budget* current_ = nullptr;

  Limits limits_;
  std::int64_t steps_;
  std::size_t since_clock_ = 0, created_ = 0;
  int depth_ = 0;
  std::chrono::steady_clock::time_point deadline_;
  Budget* before_;
};

// So many nodes, items or comparisons.
inline void charge(std::size_t steps = 1) {
  if (Budget* budget = Budget::current()) budget->step(steps);
}
// Text that is read byte by byte, or character by character.
inline void charge_read(std::size_t bytes) { charge(bytes / 64 + 1); }
inline void charge_chars(std::size_t bytes) { charge(bytes / 8 + 1); }
// Memory that is made now. `text_size`: of the text it becomes part of.
inline void charge_bytes(std::size_t bytes, std::size_t text_size = 0) {
  if (Budget* budget = Budget::current()) budget->make(bytes, text_size);
}
// Fails if so many bytes could not be charged; for what is made in many parts.
inline void need_room(std::size_t bytes, std::size_t text_size = 0) {
  if (Budget* budget = Budget::current()) budget->need_room(bytes, text_size);
}

}  // namespace vitrine::jinja
