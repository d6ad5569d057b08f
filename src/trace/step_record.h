// What one step did, in numbers. Made for the engine's own use; everything that is shown to anybody
// (usage, timings, metrics) comes from here.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "kernels/measures.h"
#include "trace/wait.h"

namespace vitrine {

enum class Phase : std::uint8_t { kPrefill, kDecode };

// Where guesses come from (speculative decoding): the text itself, also earlier answers, a draft model, what
// the caller expects.
enum class GuessSource : std::uint8_t { kNgram, kSuffix, kDraft, kPrediction };
inline constexpr int kGuessSources = 4;
constexpr const char* guess_source_name(GuessSource source) {
  constexpr const char* kNames[kGuessSources] = {"ngram", "suffix", "draft", "prediction"};
  return kNames[static_cast<int>(source)];
}

// What a source did in a step.
struct SourceShare {
  GuessSource source = GuessSource::kNgram;
  int drafts = 0, drafted = 0, accepted = 0;  // sequences with its guesses; guesses; right ones
  std::int64_t draft_ns = 0;                  // making them
  std::int64_t lost_ns = 0;                   // below 0: won
};

// Of those that did something.
class SourceShares {
 public:
  // Its share, which is there from now on.
  SourceShare& of(GuessSource source) {
    for (SourceShare& share : *this)
      if (share.source == source) return share;
    shares_[size_++] = {.source = source};
    return shares_[size_ - 1];
  }
  std::size_t size() const { return size_; }
  void resize(std::size_t size) { size_ = std::min(size, shares_.size()); }
  SourceShare* begin() { return shares_.data(); }
  SourceShare* end() { return shares_.data() + size_; }
  const SourceShare* begin() const { return shares_.data(); }
  const SourceShare* end() const { return shares_.data() + size_; }

 private:
  std::array<SourceShare, kGuessSources> shares_{};
  std::size_t size_ = 0;
};

struct StepEntry {
  std::uint64_t sequence = 0;
  Phase phase = Phase::kDecode;
  int first = 0;   // position of its first row
  int tokens = 0;  // rows
  bool sampled = false;
  int again = 0;  // of its rows, computed before and dropped by a preemption
  int slot = 0;   // its place in the batch, while it runs
  // Counted from shapes. Those of all entries sum to the step's.
  double flops = 0, kv_read_bytes = 0, kv_write_bytes = 0;
  std::int64_t share_ns = 0;  // of the step's time (engine/shares.h)
  // What came of it; nothing where it had ended before.
  int kept = 0;   // rows whose K and V stay: those before the first wrong guess
  int drawn = 0;  // tokens added to its output
};

// What a step led to for a beam (engine/beams.h).
struct BeamChange {
  std::uint64_t sequence = 0, from = 0;  // from: whose text it goes on from; 0: it has none now
  int computed = 0, prefill_end = 0;
  int output = 0;  // tokens that its reader has been told
  double sum = 0;  // log probability of its text
};

struct StepRecord {
  std::uint64_t step = 0;
  std::int64_t start_ns = 0;                                               // process_ns()
  std::int64_t plan_ns = 0, forward_ns = 0, sample_ns = 0, commit_ns = 0;  // sample: head included
  // Since the end of the step before, or since it began where there was no work: without gaps, also
  // where steps overlap on a device.
  std::int64_t wall_ns = 0, wall_from_ns = 0;  // and where that begins
  double flops_per_byte = 0;                   // that time was divided by
  std::int64_t padding_share_ns = 0;           // of wall_ns; this and the entries' shares sum to it
  std::int64_t wait_ns = 0;                    // within sample: for a device to be through
  // By the device's clock: from its first op to its last, and before that since the end of the step
  // before, if there was work. 0 where there is no such clock.
  std::int64_t device_ns = 0, device_idle_ns = 0;
  std::int64_t cache_ns = 0;  // within plan and commit: hashing and looking up prefixes
  int prefill_tokens = 0, decode_tokens = 0, head_rows = 0;
  int beam_rows = 0;     // of all these, those of beams
  int padding_rows = 0;  // belong to no sequence, up to a size that is replayed
  Blocked blocked;
  int running = 0, waiting = 0;  // sequences, after planning
  int preempted = 0;             // sequences preempted before it
  // Of its rows of new tokens, those of guesses, and the guesses that were right.
  int drafted = 0, accepted = 0;
  std::int64_t draft_ns = 0;      // within plan: guessing
  std::int64_t spec_lost_ns = 0;  // by guesses, against what its tokens cost without; below 0: won
  SourceShares by_source;
  int pages_used = 0, pages_cached = 0, pages_copied = 0;  // over all cache groups
  double flops = 0;               // multiplications and additions of matmuls and attention
  std::int64_t weight_bytes = 0;  // read once a step, whatever the number of rows
  std::int64_t kv_read_bytes = 0, kv_write_bytes = 0;
  std::vector<StepEntry> entries = {};
  std::vector<BeamChange> beams = {};
  std::vector<OpTime> ops = {};  // while they are timed; one may be there twice: also for the head

  std::int64_t total_ns() const { return plan_ns + forward_ns + sample_ns + commit_ns; }
};

}  // namespace vitrine
