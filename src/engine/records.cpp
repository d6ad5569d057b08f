#include "engine/records.h"

#include <algorithm>
#include <random>

#include "base/process_clock.h"
#include "engine/sequence.h"
#include "trace/packing.h"

namespace vitrine {
namespace {

// What pages, and entries with a change of their beams, take at most, packed.
constexpr std::size_t kPageBytes = 32, kEntryBytes = 72 + 48, kOtherBytes = 4096;
constexpr std::size_t kMostPages = 16384;

// With all of its entries.
std::size_t step_bytes(int sequences) {
  return kOtherBytes + kEntryBytes * static_cast<std::size_t>(sequences);
}

std::string random_epoch() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

// What of a step's event the step's record does not have, beside it.
struct StepAndPages {
  StepRecord& record;
  bool lost;
  const std::vector<PageChange>& pages;
};

// Those of a list from `from` to `to`.
template <typename T>
void take(std::vector<T>& out, const std::vector<T>& list, std::size_t from, std::size_t to) {
  out.assign(list.begin() + static_cast<std::ptrdiff_t>(from),
             list.begin() + static_cast<std::ptrdiff_t>(to));
}

}  // namespace

bool Records::fits(int sequences, std::int64_t bytes) {
  return bytes <= 0 || step_bytes(sequences) < StepLog::most_of(bytes);
}

Records::Records(int sequences, std::int64_t bytes) : log_(bytes), epoch_(random_epoch()) {
  if (!log_.on()) return;
  VT_CHECK(fits(sequences, bytes), "{} sequences and a log of {} bytes", sequences, bytes);
  // Pages get what is left.
  most_pages_ = std::min(kMostPages, (log_.most() - step_bytes(sequences)) / kPageBytes);
  part_.preempt.reserve(2 * static_cast<std::size_t>(sequences));
  part_.admit.reserve(2 * static_cast<std::size_t>(sequences));
  part_.pages.reserve(most_pages_);
}

template <typename Fields, typename Event>
std::uint64_t Records::append(Event& event) {
  Packer packer(log_.draft());
  Fields::visit(event, packer);
  return log_.append(Fields::kKind, packer.size());
}

void Records::arrived(const Sequence& s) {
  if (!log_.on()) return;
  const Stamps& t = s.account.stamps;
  const ArriveEvent event{.at_ns = t.submitted,
                          .sequence = s.id,
                          .parent = s.account.parent,
                          .beam_of = s.account.beam_of,
                          .label = s.account.label,
                          .tenant = s.account.tenant,
                          .choice = s.account.choice,
                          .prompt = s.account.usage.prompt_tokens,
                          .begun = s.begun,
                          .priority = s.account.priority,
                          .stamps = {.received = t.received,
                                     .body = t.body,
                                     .parsed = t.parsed,
                                     .templated = t.templated,
                                     .tokenized = t.tokenized,
                                     .compiled = t.compiled,
                                     .submitted = t.submitted}};
  append<ArriveFields>(event);
  for (const auto& fork : s.forks) arrived(*fork);
}

void Records::append_ends(Changes& changes) {
  for (const EndEvent& end : changes.ended_) append<EndFields>(end);
}

void Records::planned(Changes& changes, const Blocked& blocked, std::uint64_t step) {
  if (!log_.on() || (changes.empty() && blocked == part_.blocked)) return;
  append_ends(changes);
  changes.parts_.push_back(
      {changes.preempted_.size(), changes.admitted_.size(), changes.pages_.size()});
  part_.at_ns = process_ns(), part_.step = step;
  part_.blocked = blocked;
  part_.lost = changes.lost_;
  Changes::Part from;
  for (const Changes::Part& to : changes.parts_) {
    take(part_.preempt, changes.preempted_, from.preempted, to.preempted);
    take(part_.admit, changes.admitted_, from.admitted, to.admitted);
    take(part_.pages, changes.pages_, from.pages, to.pages);
    append<PlanFields>(part_);
    from = to;
  }
  changes.clear();
}

void Records::committed(StepRecord& record, Changes& changes) {
  if (log_.on()) {
    StepAndPages event{record, changes.lost_, changes.pages_};
    // One more than where it is: 0 is nowhere.
    const std::uint64_t at = append<StepFields>(event) + 1;
    places_[record.step % kKeptRecords].store(at, std::memory_order_release);
    append_ends(changes);
    changes.clear();
  }
  steps_.store(record.step + 1, std::memory_order_release);
}

void Records::written(const WrittenEvent& event) {
  if (log_.on()) append<WrittenFields>(event);
}

void Records::watch(Changes& changes) {
  ++watchers_;
  if (!log_.on() || changes.watched()) return;
  // What was not told until now is not to be blamed on what follows.
  if (changes.lost_) {
    part_.at_ns = process_ns(), part_.lost = true;
    part_.preempt.clear(), part_.admit.clear(), part_.pages.clear();
    append<PlanFields>(part_);
    changes.lost_ = false;
  }
  changes.watch(true);
}

void Records::unwatch() {
  watched_until_ = process_ns() + kWatchedAfter;
  --watchers_;
}

void Records::look(Changes& changes, std::int64_t now) {
  if (changes.watched() && watchers_ == 0 && now >= watched_until_) changes.watch(false);
}

std::uint64_t Records::oldest() const {
  const std::uint64_t all = steps();
  return all > kKeptRecords ? all - kKeptRecords : 0;
}

bool Records::read(std::uint64_t step, std::vector<std::uint64_t>& words, StepEvent& event) const {
  const std::uint64_t at = places_[step % kKeptRecords].load(std::memory_order_acquire);
  if (at == 0 || !log_.read_at(at - 1, words)) return false;
  bool found = false;
  StepLog::each(words, [&](const PackedEvent& packed) {
    Unpacker from(packed.bytes);
    StepFields::visit(event, from);
    found = event.record.step == step;  // a step that failed leaves the place of an older one
  });
  return found;
}

std::vector<StepRecord> Records::since(std::uint64_t from, std::size_t most) const {
  std::vector<StepRecord> out;
  std::vector<std::uint64_t> words;
  StepEvent event;
  const std::uint64_t all = steps();
  for (std::uint64_t i = std::max(from, oldest()); i < all && out.size() < most; ++i)
    if (read(i, words, event)) out.push_back(event.record);
  return out;
}

std::vector<OwnStep> Records::of(std::span<const std::uint64_t> sequences) const {
  std::vector<OwnStep> out;
  std::vector<std::uint64_t> words;
  StepEvent event;
  std::vector<StepEntry> entries;
  const std::uint64_t all = steps();
  auto is_theirs = [&](const StepEntry& e) {
    return std::binary_search(sequences.begin(), sequences.end(), e.sequence);
  };
  for (std::uint64_t i = oldest(); i < all; ++i) {
    if (!read(i, words, event)) continue;
    entries.swap(event.record.entries);
    event.record.entries.clear();
    const auto theirs = std::count_if(entries.begin(), entries.end(), is_theirs);
    if (theirs == 0) continue;
    OwnStep& own = out.emplace_back();
    own.record = event.record;
    own.record.entries.reserve(static_cast<std::size_t>(theirs));
    std::copy_if(entries.begin(), entries.end(), std::back_inserter(own.record.entries), is_theirs);
    std::erase_if(own.record.beams, [&](const BeamChange& b) {
      return !std::binary_search(sequences.begin(), sequences.end(), b.sequence);
    });
    own.sequences = entries.size();
    own.largest.resize(std::min(entries.size(), OwnStep::kMostLargest));
    std::partial_sort_copy(entries.begin(), entries.end(), own.largest.begin(), own.largest.end(),
                           [](const StepEntry& a, const StepEntry& b) {
                             return std::pair(-a.tokens, a.sequence) <
                                    std::pair(-b.tokens, b.sequence);
                           });
  }
  return out;
}

}  // namespace vitrine
