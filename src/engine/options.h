// How an engine is set up. Plain values with ranges.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "draft/source.h"
#include "tensor/dtype.h"

namespace vitrine {

// How sequences are batched: decided anew every step, or a full batch that runs to its slowest
// member.
enum class Policy { kContinuous, kStatic };
const char* policy_name(Policy policy);

// Where guesses for the next tokens come from (speculative decoding). kAuto: the best that there is for the model
// and the backend (a draft model beside texts, if one is given); the others are an error where they cannot be.
enum class SpecMode { kAuto, kOff, kNgram, kSuffix, kDraft };
const char* spec_mode_name(SpecMode mode);
std::optional<SpecMode> spec_mode(std::string_view name);
inline constexpr int kMostGuesses = 16;  // for a sequence and step

class ModelFile;

// A smaller model that guesses (SpecMode::kDraft and kAuto).
struct DraftOptions {
  std::shared_ptr<const ModelFile> file;  // null: none
  // Token ids below it mean the same to both models; others are never guessed. 0: all that both have.
  int ids = 0;
};

struct EngineOptions {
  std::string backend = "auto";
  int device = 0;         // which of the backend's devices
  int threads = 0;        // 0: all
  std::string isa;        // cpu: a lower instruction set than the best, for comparison
  int context = 0;        // 0: the model's, at most kDefaultContext
  int sequences = 1;      // that run at the same time; 0: as memory allows
  int kv_tokens = 0;      // positions of the KV pool; 0: sequences x context, or as memory allows
  int step_tokens = 512;  // rows of the largest step
  int page_size = 32;     // positions
  DType kv_dtype = DType::kF16;
  // Steps between running and committing; 0 is the specification. -1: 1 where steps are queued, so
  // that the device has the next one while the host looks at the last.
  int commit_delay = -1;
  bool deterministic = false;  // cuda: bits do not depend on the batch; others always do so
  bool synchronous = false;    // cuda: every op is waited for, to find one that fails
  // A sequence that its reader holds for so long without a word is ended.
  int hold_timeout_ms = 600'000;
  int max_queue = 512;  // sequences that may wait
  Policy policy = Policy::kContinuous;
  int static_wait_ms = 1000;  // Policy::kStatic: how long a batch that is not full waits
  int mixed_step_ms = 250;    // about how long prefill may take beside decoding; 0: no limit
  bool prefix_cache = true;
  SpecMode spec = SpecMode::kOff;
  int spec_tokens = 8;  // guesses for a sequence and step, at most
  DraftOptions draft;
  int spec_mib = 64;         // for what the guesses are made of
  bool spec_always = false;  // guesses are computed whatever they cost (tests)
  // Makes the sources of guesses instead of `spec`, which must not be off (tests, bench).
  std::function<std::unique_ptr<DraftSource>()> spec_source;
  int trace_mib = 32;  // for the log of the last steps; 0: none
  bool trace_pages =
      false;  // changes of pages are told at any time, not only while somebody watches
  bool poison_pages = false;  // fill pages with NaN when they are taken (tests)
  std::function<void(std::int64_t bytes)> progress;

  // There is a draft model to load.
  bool drafts() const {
    return draft.file != nullptr && (spec == SpecMode::kDraft || spec == SpecMode::kAuto);
  }
};
inline constexpr int kDefaultContext = 4096;

// What the numbers may be; the flags of the command line have the same ranges.
struct EngineRange {
  int least, most;
};
struct EngineRanges {
  static constexpr EngineRange device{0, 1023}, threads{0, 1024}, context{0, 1 << 28},
      sequences{0, 4096}, kv_tokens{0, 1 << 30}, step_tokens{1, 65536}, page_size{16, 1024},
      max_queue{1, 1 << 20}, static_wait_ms{0, 1 << 20}, mixed_step_ms{0, 1 << 20},
      trace_mib{0, 1 << 14}, spec_tokens{1, kMostGuesses}, spec_mib{1, 1 << 16};
};
// An error names the option.
Status check_options(const EngineOptions& options);

}  // namespace vitrine
