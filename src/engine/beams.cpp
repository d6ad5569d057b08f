#include "engine/beams.h"

#include <algorithm>

#include "engine/memory_plan.h"
#include "engine/sequence.h"

namespace vitrine {
namespace {

bool contains(std::span<Sequence* const> list, const Sequence* s) {
  return std::find(list.begin(), list.end(), s) != list.end();
}

std::span<const std::int32_t> output_of(const Sequence& s) {
  return std::span(s.tokens).subspan(static_cast<std::size_t>(s.prompt));
}

// How long both agree, where they are known to agree until `known`.
int agree(std::span<const std::int32_t> a, std::span<const std::int32_t> b, int known) {
  const auto end = static_cast<int>(std::min(a.size(), b.size()));
  while (known < end && a[known] == b[known]) ++known;
  return std::min(known, end);
}

}  // namespace

Beams::Beams(const BeamOptions& options, int max_output) : search(options, max_output) {
  const auto beams = static_cast<std::size_t>(options.beams);
  all.reserve(beams), live.reserve(beams), rows_.reserve(beams), seats_.reserve(beams);
}

bool Beams::is_live(const Sequence& s) const { return contains(live, &s); }

bool Beams::ranked() const {
  return std::all_of(live.begin(), live.end(), [](const Sequence* s) { return s->ranked; });
}

std::span<const BeamSearch::Row> Beams::rows() {
  rows_.clear();
  for (const Sequence* s : live) rows_.push_back({s->candidates, output_of(*s)});
  return rows_;
}

std::span<Sequence* const> Beams::seat_children() {
  const auto children = search.live();
  seats_.assign(children.size(), nullptr);
  const auto is_parent = [&](const BeamSearch::Child& c) { return live[c.parent] == &first(); };
  // The caller moves texts in this order: the first one's place is empty, so it comes first.
  if (std::none_of(children.begin(), children.end(), is_parent)) seats_[0] = &first();
  for (std::size_t i = 0; i < children.size(); ++i) {
    Sequence* parent = live[children[i].parent];
    if (seats_[i] == nullptr && !contains(seats_, parent)) seats_[i] = parent;
  }
  // Those without a child have room for the others. Each of these has its parent where it was.
  for (auto& seat : seats_)
    for (std::size_t i = 0; seat == nullptr; ++i)
      if (!contains(seats_, all[i])) seat = all[i];
  return seats_;
}

int Beams::agreed(int known) const {
  const auto text = output_of(*live.front());
  auto length = static_cast<int>(text.size());
  for (const Sequence* s : live) length = std::min(length, agree(text, output_of(*s), known));
  for (const BeamSearch::Finished* f : search.best())
    length = std::min(length, agree(text, f->tokens, known));
  return length;
}

int Beams::shared() const {
  const auto& tokens = live.front()->tokens;
  int length = static_cast<int>(tokens.size()) - 1;
  for (const Sequence* s : live)
    length = std::min(length, agree(tokens, s->tokens, live.front()->prompt));
  return length;
}

bool Beams::held() const {
  return std::any_of(all.begin(), all.begin() + returned(), [](const Sequence* s) {
    return s->stream->end_asked() == TokenStream::End::kNone && s->stream->held();
  });
}

bool Beams::behind(int backlog) const {
  return std::any_of(all.begin(), all.begin() + returned(), [&](const Sequence* s) {
    return s->stream->end_asked() == TokenStream::End::kNone && s->stream->backlog() >= backlog;
  });
}

bool Beams::unwanted(bool& stop) const {
  stop = false;
  for (int i = 0; i < returned(); ++i) {
    const auto end = all[i]->stream->end_asked();
    if (end == TokenStream::End::kNone) return false;
    stop |= end == TokenStream::End::kStop;
  }
  return true;
}

int Beams::pages(const MemoryPlan& plan, std::size_t group, int beams, int prompt, int length) {
  const int P = plan.page_size, shared = prompt / P, each = (length + P - 1) / P - shared;
  return std::min(shared + beams * each, beams * plan.groups[group].pages_per_sequence);
}

}  // namespace vitrine
