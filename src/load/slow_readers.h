// Clients that ask for long answers and read a byte a second. They are not part of the statistics;
// the question is how much they slow down others. They run on their own thread until this is
// destroyed.
#pragma once

#include <memory>

#include "load/client.h"

namespace vitrine::load {

class SlowReaders {
 public:
  // Each answer has `tokens` tokens with the log probabilities of 20, far more bytes than the
  // buffers of two sockets hold.
  SlowReaders(const Target& target, const LoadSpec& spec, int count, int tokens);
  ~SlowReaders();
  SlowReaders(const SlowReaders&) = delete;
  SlowReaders& operator=(const SlowReaders&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vitrine::load
