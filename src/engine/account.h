// What a request cost and what happened to it: filled from the records of the steps it was in. Sent
// with the end of its stream, kept for the last requests, and shown while it runs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/written.h"
#include "engine/life.h"
#include "trace/wait.h"

namespace vitrine {

enum class FinishReason { kStop, kLength, kCancelled, kTimeout, kError };
inline constexpr int kFinishReasons = 5;
// The error of a request that ended (kError) for lack of memory; it may succeed later.
inline constexpr std::string_view kOutOfMemory = "out of memory";
const char* finish_reason_name(FinishReason reason);

struct Usage {
  int prompt_tokens = 0, completion_tokens = 0;
  int cached_tokens = 0;  // of the prompt, not computed because the cache had them
};

// From the records of the steps that the sequence was in.
struct Timings {
  double queue_ms = 0;                   // submitted until first planned
  double ttft_ms = 0;                    // submitted until the first token was out
  double total_ms = 0;                   // submitted until it ended
  double prefill_ms = 0, decode_ms = 0;  // steps in which it prefilled; decoded
  int prefill_steps = 0, decode_steps = 0;
  int decode_tokens = 0;  // drawn in steps in which it decoded
  double prefill_tok_s = 0, decode_tok_s = 0;
};

// Why no more of the prompt came from the cache.
enum class CacheMiss {
  kNone,      // all whole pages came from it
  kNew,       // no earlier request went on from there
  kDiffers,   // the nearest earlier request has another token at `position`
  kEvicted,   // the page from `position` on was there and had to make room
  kWindow,    // a layer's window over `position` is no longer there
  kBypassed,  // the request needs every row (log probabilities, a mean), or there is no cache
};
const char* cache_miss_name(CacheMiss miss);

struct CacheAccount {
  int cached = 0;    // tokens
  int possible = 0;  // tokens in the prompt's whole pages: the most that can come from the cache
  CacheMiss miss = CacheMiss::kNew;
  int position = 0;                    // the first token that had to be computed, or that differed
  std::int32_t here = -1, there = -1;  // kDiffers: the prompt's token, the cached one
  std::string text() const;            // in words
};

const char* wait_name(Wait wait);

// Of the time in the queue, the part in which it was the first; before that others were.
struct QueueAccount {
  Wait reason = Wait::kNone;  // the last one
  double first_ms = 0;        // since nobody was before it
  int needed = 0,
      available = 0;  // kPages: pages it needed, with those kept for others; pages there
};

// When things happened to a request: process_ns(); 0: not yet, or never.
struct Stamps {
  // By the server, before the engine knows of it.
  std::int64_t received = 0;   // its first byte
  std::int64_t body = 0;       // all of it
  std::int64_t taken = 0;      // a worker began with it
  std::int64_t parsed = 0;     // the fields are read
  std::int64_t templated = 0;  // the conversation is text
  std::int64_t tokenized = 0;
  std::int64_t compiled = 0;  // its constraint
  // By the engine.
  std::int64_t submitted = 0;
  std::int64_t admitted = 0;  // has a seat, for the first time
  std::int64_t first_token = 0, ended = 0;
  // By the server: when the first and the last bytes of its answer were handed to the system.
  std::int64_t first_write = 0, last_write = 0;
};

inline constexpr int kKeptAccounts = 512;  // of the last requests that ended

struct Account {
  std::uint64_t id = 0;
  std::string label, tenant;
  int choice = 0, priority = 0;
  std::uint64_t parent = 0;   // Request::parent
  std::uint64_t beam_of = 0;  // of a beam: the first sequence of its request; 0: it is none
  std::int64_t submitted_unix_ms = 0;
  Usage usage;
  Timings timings;
  CacheAccount cache;
  QueueAccount queue;
  LifeBook life;
  int pages = 0;                  // held at most at one time, over all cache groups
  int drafted = 0, accepted = 0;  // guesses that were computed; of these, those that were drawn
  int drafts = 0;                 // steps with guesses
  int predicted = 0, predicted_accepted = 0;  // of these guesses, those of Request::prediction
  int preemptions = 0;
  int recomputed_tokens = 0;  // computed again after preemptions
  int steps = 0;
  double batch_mean = 0;  // sequences in its steps, itself included
  int batch_max = 0;
  double flops = 0;
  double weight_bytes = 0;  // its rows' share of each step's pass over the weights
  double kv_read_bytes = 0, kv_write_bytes = 0;
  // Its shares of its steps' time (engine/shares.h), complete when the step in which it ended is:
  // computing the prompt, computing output, computing again what a preemption had dropped.
  std::int64_t input_ns = 0, output_ns = 0, wasted_ns = 0;
  std::int64_t cached_ns = 0;  // looking up what of its prompt the cache has
  Stamps stamps;
  std::uint64_t came_before = 0;  // the step that was next when it came
  std::uint64_t first_step = 0,
                last_step = 0;  // it was in these and perhaps in some between; with steps > 0
  std::int64_t bytes_out = 0;   // of its answer, with its head
  std::shared_ptr<const Written> written;  // its answer, as it goes out; null: it has none
  std::string
      traceparent;  // the caller's span (W3C Trace Context), which its own belong to; or none
  FinishReason reason = FinishReason::kStop;  // once it has ended
  std::string error;

  // It has ended, or was never submitted: its answer may still be going out.
  bool over() const { return stamps.ended > 0 || stamps.submitted == 0; }
  // Until its last byte is out; `now` while it is not.
  std::int64_t written_until(std::int64_t now) const;
  // Copies from `written` what the stamps say about it.
  void take_written();
};

}  // namespace vitrine
