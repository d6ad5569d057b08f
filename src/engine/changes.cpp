#include "engine/changes.h"

#include <new>

namespace vitrine {

void Changes::turn_on(int sequences, std::size_t most_pages) {
  on_ = true;
  preempted_.reserve(2 * static_cast<std::size_t>(sequences));
  admitted_.reserve(2 * static_cast<std::size_t>(sequences));
  parts_.reserve(2 * static_cast<std::size_t>(sequences));
  ended_.reserve(2 * static_cast<std::size_t>(sequences));
  pages_.reserve(most_pages);
}

template <typename T>
void Changes::note(std::vector<T>& list, const T& item) {
  if (list.size() < list.capacity())
    list.push_back(item);
  else
    lost_ = true;
}

void Changes::page(const PageChange& change) { note(pages_, change); }

void Changes::admitted(const Admitted& a) {
  if (on_) note(admitted_, a);
}

void Changes::preempted(const Preempted& p) {
  if (!on_) return;
  if (admitted_.size() > (parts_.empty() ? 0 : parts_.back().admitted))
    note(parts_, {preempted_.size(), admitted_.size(), pages_.size()});
  note(preempted_, p);
}

void Changes::ended(const Account& a) noexcept {
  if (!on_) return;
  const EndEvent end{.at_ns = a.stamps.ended,
                     .sequence = a.id,
                     .reason = finish_reason_name(a.reason),
                     .prompt = a.usage.prompt_tokens,
                     .output = a.usage.completion_tokens,
                     .cached = a.usage.cached_tokens,
                     .recomputed = a.recomputed_tokens,
                     .preemptions = a.preemptions,
                     .steps = a.steps};
  try {
    ended_.push_back(end);
  } catch (const std::bad_alloc&) {
    lost_ = true;
  }
}

void Changes::clear() {
  preempted_.clear(), admitted_.clear(), pages_.clear(), parts_.clear(), ended_.clear();
  lost_ = false;
}

}  // namespace vitrine
