// What a request's time went into, from its first byte to the last of its answer: parts that follow each
// other without a gap. The server's part is told by stamps, the engine's by a book that is kept while
// it is there. Steps are taken whole: a sequence that has rows in one prefills or decodes for all of
// its wall time, whoever else was in it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace vitrine {

struct Account;

enum class LifeKind : std::uint8_t {
  kRead,      // its bytes came in
  kParse,     // its fields were read
  kTemplate,  // its conversation became text
  kTokenize,
  kCompile,  // its constraint
  kHandoff,  // between two threads
  kQueue,
  kPrefill,
  kDecode,
  kSatOut,     // it had a seat and no rows in a step
  kPreempted,  // it had lost its seat
  kPaused,     // its reader was behind, or held it
  kBetween,    // it had a seat and no step was at work
  kWrite,      // it had ended, and its answer went out
};
inline constexpr int kLifeKinds = 14;
const char* life_kind_name(LifeKind kind);

enum class LifeCause : std::uint8_t {
  kNone,
  // Of the queue.
  kStep,    // a step was at work before anybody looked at it
  kBehind,  // others were before it: `by` was the first
  kSeats,   // it was the first: see Wait
  kPages,   // the same; of kSatOut: there was no page for its rows
  kPolicy,  // the same
  kPrompt,  // a further choice: `by`, the first one, computes the prompt
  // Of kSatOut.
  kBudget,  // the step had no room for its rows
  kHost,    // the host draws its token while the device goes on
  kBeams,   // the other beams of its request were not as far, or it had no text
  // Of kPaused.
  kReader,  // too many tokens are unread
  kHeld,    // its reader lets it draw no more
  // Of kPrefill.
  kAgain,  // what a preemption had dropped
  // Of kHandoff.
  kWorker,  // it waited for one
  kEngine,  // from the worker to the queue
};
const char* life_cause_name(LifeCause cause);

struct LifePart {
  LifeKind kind = LifeKind::kRead;
  std::int64_t start = 0, ns = 0;  // process_ns()
  LifeCause cause = LifeCause::kNone;
  std::uint64_t by = 0;  // a sequence: of kBehind, kPrompt, and who preempted; 0: nobody
  int sum_of = 0;        // the sum of about so many parts that were too many to keep; 0: one part
};

// The engine's part. Engine thread only, under the books lock. Nothing but begin() and copies
// allocates.
class LifeBook {
 public:
  static constexpr std::size_t kMostTurns = 64;  // what follows is kept as sums

  void begin(std::int64_t at);  // it has been submitted
  // From `at` on it is something else, unless it is the same as before. Never before the last turn.
  void turn(std::int64_t at, LifeKind kind, LifeCause cause = LifeCause::kNone,
            std::uint64_t by = 0) {
    // Most steps change nothing.
    const Turn to{.by = by, .kind = kind, .cause = cause};
    if (!turns_.empty() && to.same(last_) && !rested_before(at))
      rests_from_ = 0;
    else
      turn_to(at, to);
  }
  // From `at` on nothing is at work for it, until it turns to something.
  void rest(std::int64_t at) { rests_from_ = at; }
  void end(std::int64_t at);
  // As the one of another choice until `at`.
  void follow(const LifeBook& other, std::int64_t at);
  // It waits, and nobody has said for whom.
  bool unseen() const { return last_.kind == LifeKind::kQueue && last_.cause == LifeCause::kStep; }

  // Appends the parts until `end`.
  void parts(std::vector<LifePart>& out, std::int64_t end) const;

 private:
  struct Turn {
    std::int64_t at = 0;
    std::uint64_t by = 0;
    LifeKind kind = LifeKind::kQueue;
    LifeCause cause = LifeCause::kNone;
    bool same(const Turn& t) const { return kind == t.kind && cause == t.cause && by == t.by; }
  };
  bool rested_before(std::int64_t at) const {
    return rests_from_ > 0 && rests_from_ < std::max(at, last_.at);
  }
  void turn_to(std::int64_t at, Turn turn);
  void put(const Turn& turn);

  std::vector<Turn> turns_;
  Turn last_;
  std::int64_t rests_from_ = 0;  // 0: it does not
  // Of turns that were too many, `last_` not yet included.
  int more_ = 0;
  std::int64_t more_from_ = 0;
  std::array<std::int64_t, kLifeKinds> more_ns_{};
};

// All of it: from the first stamp on, to the last byte of the answer, or until `now` where that is not
// out yet. The parts sum to the time between, to the nanosecond.
std::vector<LifePart> life_of(const Account& account, std::int64_t now);

}  // namespace vitrine
