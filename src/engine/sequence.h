// A request's state in the engine. Engine thread only.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "engine/request.h"
#include "kv/page_pool.h"
#include "sampling/chain.h"

namespace vitrine {

using Clock = std::chrono::steady_clock;

// Three lengths tell how far a sequence is, in positions:
//   computed <= scheduled    K and V exist after the committed steps | after all planned steps
//   tokens.size()            committed: tokens that the host knows
// Planning never reads a token past the committed length: such an input comes from the runner's
// table of last sampled tokens, at this sequence's slot.
struct Sequence {
  std::uint64_t id = 0;
  Request request;
  std::shared_ptr<TokenStream> stream;
  std::vector<std::int32_t> tokens;  // prompt and committed output
  int prompt = 0;                    // its length
  int max_output = 0;
  int scheduled = 0, computed = 0;
  int in_flight = 0;  // planned steps that are not committed
  bool finished = false;

  int slot = -1;                   // row of the tables, for life; -1: waiting
  std::vector<BlockTable> tables;  // by cache group
  std::vector<int> reserved;       // pages set aside, by cache group
  std::uint64_t seed = 0;
  std::unique_ptr<Chain> chain;
  SamplerState history;

  Clock::time_point submitted;
  Usage usage;
  Timings timings;

  // Output tokens that the planned steps will have produced.
  int planned_output() const { return scheduled < prompt ? 0 : scheduled - prompt + 1; }
};

// One step's work.
struct BatchEntry {
  Sequence* sequence = nullptr;
  int first = 0;        // position of the first row
  int count = 0;        // rows
  bool sample = false;  // the last row's logits choose a token
  std::int32_t sampled = -1;
  float logprob = 0;
  LogitsStatus status = LogitsStatus::kOk;
};

struct Batch {
  std::vector<BatchEntry> entries;
  int tokens = 0;
  bool empty() const { return entries.empty(); }
  void clear() { entries.clear(), tokens = 0; }
};

}  // namespace vitrine
