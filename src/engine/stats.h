// What the engine is doing and has done, as plain numbers to copy.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/options.h"
#include "engine/step_record.h"

namespace vitrine {

struct PoolStats {  // of one cache group
  int window = 0, page_size = 0;
  int total = 0, free = 0;
  int cached = 0;           // without a holder, kept for their tokens
  int used = 0;             // held by sequences
  int shared = 0;           // of these, held by more than one
  std::int64_t tokens = 0;  // in used pages, a shared page counted once
  std::int64_t page_bytes = 0;
  double waste() const {  // share of the room in used pages that holds nothing
    double room = static_cast<double>(used) * page_size;
    return room > 0 ? 1.0 - static_cast<double>(tokens) / room : 0.0;
  }
};

enum class SequenceState { kWaiting, kPreempted, kPrefill, kDecode, kPaused };
const char* sequence_state_name(SequenceState state);

struct SequenceStats {
  SequenceState state = SequenceState::kWaiting;
  double age_ms = 0;
  int computed = 0, length = 0;  // positions with K and V; tokens known
  int prefill_end = 0;           // positions to compute before the next token is drawn
  int slot = -1;                 // its place in the batch; -1: none
  Account account;               // so far
};

struct Snapshot {
  std::uint64_t step = 0;
  double uptime_s = 0;
  int max_sequences = 0, step_tokens = 0, max_queue = 0, context = 0;
  std::string policy;
  std::vector<PoolStats> pools;
  std::vector<SequenceStats> running, waiting;
  Blocked blocked;  // before the last step that was planned
};

// Every page of the cache, and who holds it.
struct PageMap {
  struct Group {
    int window = 0, page_size = 0;
    std::string pages;  // a letter each: '.' free, 'c' cached, 'u' used
    // Of each page: tables that hold it, positions that hold a token, whether it has a key by which it is found.
    std::vector<int> holders, fill;
    std::vector<bool> named;
  };
  // Of a sequence that runs: the page of every page_size positions; -1 where a window has moved on. A
  // used page is in as many tables as it has holders. One that has ended holds its pages until its last
  // step is through, without a slot and without a length.
  struct Table {
    std::uint64_t sequence = 0;
    int slot = 0, group = 0;
    int length = 0;  // positions with K and V
    std::vector<std::int32_t> pages;
  };
  std::vector<Group> groups;
  std::vector<Table> tables;
};

// What a page of the cache holds.
struct PageContent {
  char state = '.';  // as in PageMap
  int holders = 0;
  int index = -1;                    // of the page among those of its prompt; -1: it holds nothing
  std::vector<std::int32_t> tokens;  // whose K and V it has
};

// Cumulative histogram in Prometheus' manner.
class Histogram {
 public:
  Histogram() = default;
  explicit Histogram(std::span<const double> bounds)
      : bounds_(bounds), counts_(bounds.size() + 1, 0) {}
  void add(double value);
  std::span<const double> bounds() const { return bounds_; }
  // By bucket, the last one without an upper bound; not cumulative.
  std::span<const std::uint64_t> counts() const { return counts_; }
  double sum() const { return sum_; }
  std::uint64_t count() const { return count_; }

 private:
  std::span<const double> bounds_;
  std::vector<std::uint64_t> counts_;
  double sum_ = 0;
  std::uint64_t count_ = 0;
};

struct Metrics {
  Metrics();
  // Seconds.
  Histogram time_to_first_token, inter_token_latency, queue_time, prefill_time, decode_time,
      e2e_latency;
  // Tokens.
  Histogram prompt_length, generation_length, step_tokens;
  std::uint64_t prompt_tokens = 0, cached_tokens = 0, generation_tokens = 0, recomputed_tokens = 0;
  std::uint64_t prefix_queries = 0, prefix_hits = 0;  // tokens asked for, tokens found
  std::uint64_t preemptions = 0, evictions = 0, rejected = 0, steps = 0;
  // Speculation: sequences with guesses in a step, guesses computed, and drawn by their place in the draft.
  std::uint64_t drafts = 0, drafted_tokens = 0;
  std::array<std::uint64_t, kMostGuesses> accepted_by_place{};
  struct Guesses {  // of one source
    std::uint64_t drafts = 0, drafted = 0, accepted = 0;
    double seconds = 0;       // making them
    double lost_seconds = 0;  // against what the tokens take without; below 0: won
  };
  std::array<Guesses, kGuessSources> by_source{};
  bool speculates = false;                               // most steps carry guesses
  std::array<std::uint64_t, kFinishReasons> finished{};  // by FinishReason
  int running = 0, waiting = 0;                          // now
  double kv_usage = 0;                                   // share of pages in use, fullest group
  double busy_seconds = 0;                               // in steps
  double prefix_seconds = 0;  // of these, hashing and looking up prefixes
};

}  // namespace vitrine
