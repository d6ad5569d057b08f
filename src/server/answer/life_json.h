// A request's life, and why it was as it was, for one who asks.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/engine.h"
#include "server/http/http.h"

namespace vitrine {

// What whoever asks may call the sequences that others' lives name.
class Names {
 public:
  Names(std::span<const Account> ended, const Snapshot& now, const HttpRequest& viewer);
  // Operators know numbers, others the labels of what is theirs; null: another key's.
  json::value of(std::uint64_t sequence) const;
  std::string text(std::uint64_t sequence) const;  // "request 41", "another key's request"
  bool sees_all() const { return all_; }
  bool hides(std::uint64_t sequence) const { return of(sequence).is_null(); }

 private:
  bool all_;
  std::map<std::uint64_t, std::string> labels_;  // of those that are the viewer's
};

// Who used the engine in a while, by their shares of its steps.
struct Ran {
  std::uint64_t sequence = 0;
  std::int64_t prefill_ns = 0, decode_ns = 0;
  std::int64_t prefilled = 0, decoded = 0;  // rows
  std::int64_t ns() const { return prefill_ns + decode_ns; }
};
// The most first. Of steps that are only partly within, the part.
std::vector<Ran> ran_between(std::span<const StepRecord> steps, std::int64_t from, std::int64_t to);

// [[kind, start_ns, ns, about]]; about is null or has "reason", "behind" or "by", "sum_of", and for a
// long wait "ran": [[name, ns, rows prefilled, rows decoded]] while it lasted.
json::array life_json(std::span<const LifePart> life, std::span<const StepRecord> queue_steps,
                      const Names& names);
// Sentences.
std::vector<std::string> why(const Account& account, std::span<const LifePart> life,
                             std::span<const StepRecord> queue_steps, const Names& names);

// The records of the steps while it waited, as far as they are kept, at most kMostQueueSteps.
inline constexpr std::uint64_t kMostQueueSteps = 512;
std::vector<StepRecord> steps_of_queue(const Engine& engine, const Account& account);

std::string duration_text(std::int64_t ns);   // "1.40 s", "4.1 ms", "250 us"
std::string count_text(std::int64_t number);  // "12,288"

}  // namespace vitrine
