#include "engine/speculator.h"

#include <algorithm>

#include "base/process_clock.h"

namespace vitrine {
namespace {

// Tokens that a source learns of a sequence beside one step, so that a long prompt holds up nobody.
constexpr int kLearnedAtOnce = 256;
// The part of the memory for outputs of sequences that have ended.
constexpr std::size_t kSharedPart = 4;

std::size_t mib(int n) { return static_cast<std::size_t>(n) << 20; }

// Steps are measured together by what they are padded to, and steps that are replayed are.
std::vector<int> step_sizes(const EngineOptions& options) {
  if (options.commit_delay == 0) return StepCost::default_sizes(options.step_tokens);
  std::vector<int> sizes;
  for (int rows = 1; rows <= options.step_tokens; rows = sizes.back() + 1)
    sizes.push_back(std::min(padded_rows(rows), options.step_tokens));
  return sizes;
}

NgramOptions ngram_options(std::size_t bytes) {
  NgramOptions out;
  while (out.window > 256 && NgramSource(out).bytes() > bytes) out.window /= 2;
  return out;
}

}  // namespace

Speculator::Speculator(const EngineOptions& options, int sequences)
    : most_(options.spec_tokens), always_(options.spec_always), late_(options.commit_delay > 0) {
  if (options.spec == SpecMode::kOff) return;
  const bool suffix = options.spec != SpecMode::kNgram;
  const std::size_t all = mib(options.spec_mib);
  if (suffix) shared_ = std::make_unique<SharedSuffixes>(all / kSharedPart);
  const std::size_t left = all - (suffix ? shared_->bytes() : 0);
  const int seats = std::min(sequences, kMostSeats);
  SuffixOptions own;
  own.local_bytes = std::min(own.local_bytes, left / static_cast<std::size_t>(seats));
  const NgramOptions ngram = ngram_options(left / static_cast<std::size_t>(seats));
  for (int i = 0; i < seats; ++i) {
    Seat& seat = seats_.emplace_back();
    if (options.spec_source)
      seat.source = options.spec_source();
    else if (suffix)
      seat.source = std::make_unique<SuffixSource>(own, shared_.get());
    else
      seat.source = std::make_unique<NgramSource>(ngram);
    seat.guesses.resize(static_cast<std::size_t>(most_ + (late_ ? options.commit_delay : 0)));
  }
  policy_ = std::make_unique<DraftPolicy>(PolicyOptions{
      .seats = seats, .max_guesses = most_, .sources = 1, .sizes = step_sizes(options)});
  candidates_.reserve(seats_.size());
  drafting_.reserve(seats_.size());
  verified_.reserve(seats_.size());
}

Speculator::Seat* Speculator::seat_of(const Sequence& s) {
  if (s.slot < 0 || s.slot >= static_cast<int>(seats_.size())) return nullptr;
  Seat& seat = seats_[s.slot];
  return seat.sequence == s.id ? &seat : nullptr;
}

void Speculator::begin(const Sequence& s) {
  if (s.slot < 0 || s.slot >= static_cast<int>(seats_.size())) return;
  Seat& seat = seats_[s.slot];
  seat.sequence = s.id;
  seat.learned = 0;
  seat.source->begin(s.request.cache_salt);
  policy_->begin(s.slot);
}

void Speculator::ended(const Sequence& s) {
  if (Seat* seat = seat_of(s); seat != nullptr && s.request.speculative)
    seat->source->finish(std::span(s.tokens).subspan(static_cast<std::size_t>(s.prompt)));
}

// It draws a token in the next step, or would if all were committed before.
bool Speculator::ready(const Sequence& s) {
  return !s.finished && !s.prefilling() && !s.waits() && !s.paused() && s.left() > 1;
}

// False: it is behind, and goes on beside the next step.
bool Speculator::learn(const Sequence& s, Seat& seat) {
  const auto known = static_cast<int>(s.tokens.size());
  if (seat.learned == known) return true;
  seat.learned = std::min(known, seat.learned + kLearnedAtOnce);
  seat.source->extend(std::span(s.tokens).first(static_cast<std::size_t>(seat.learned)));
  return seat.learned == known;
}

// Its guesses, up to a token that would end it. The first are those for its tokens in flight.
int Speculator::guess(const Sequence& s, Seat& seat) {
  const int most = std::min(most_, s.left() - 1) + s.in_flight;
  const int found =
      seat.source->draft(s.tokens, std::span(seat.guesses).first(static_cast<std::size_t>(most)));
  for (int i = 0; i < found; ++i)
    if (s.ends_with(seat.guesses[i].token)) return i;
  return found;
}

std::int64_t Speculator::propose(std::span<const std::unique_ptr<Sequence>> running,
                                 StepShape shape) {
  settles_ = false;
  for (const auto& s : running)
    if (s->in_flight == 0) s->draft.clear();
  if (!always_ && !policy_->drafts()) return 0;
  const std::int64_t start = process_ns();
  candidates_.clear(), drafting_.clear();
  for (const auto& s : running) {
    Seat* seat = seat_of(*s);
    if (seat == nullptr || !s->request.speculative || s->finished) continue;
    if (!learn(*s, *seat) || !ready(*s)) continue;
    const int ahead = s->in_flight, count = guess(*s, *seat) - ahead;
    if (count <= 0) continue;
    candidates_.push_back(
        {.seat = s->slot,
         .guesses = std::span(seat->guesses)
                        .subspan(static_cast<std::size_t>(ahead), static_cast<std::size_t>(count)),
         .take = count});
    drafting_.push_back(s.get());
  }
  shape.drafting_ns = static_cast<double>(process_ns() - start);
  if (!always_) policy_->plan(shape, candidates_);
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    Sequence& s = *drafting_[i];
    if (candidates_[i].take == 0) continue;
    // One whose tokens the host draws sits out a step in any case.
    settles_ = settles_ || (late_ && !s.waits_for_host);
    for (int k = 0; k < candidates_[i].take && s.in_flight == 0; ++k)
      s.draft.push_back(candidates_[i].guesses[k].token);
  }
  if (shared_) shared_->learn(kLearnedAtOnce);
  return process_ns() - start;
}

void Speculator::observe(const Batch& batch, StepRecord& record) {
  verified_.clear();
  record.drafted = record.accepted = 0;
  // Where the next step is planned while one runs, nobody waits for guesses.
  const auto drafting = static_cast<double>(late_ && !batch.waited ? 0 : batch.draft_ns);
  StepShape shape{.rows = batch.tokens, .drafting_ns = drafting, .waited = batch.waited};
  for (const BatchEntry& e : batch.entries) {
    if (e.prefill || e.draws == 0) continue;
    ++shape.decoding;
    if (e.draws == 1) continue;
    const int guesses = e.draws - 1, right = std::max(0, e.tokens - 1);
    shape.rows -= guesses;
    record.drafted += guesses, record.accepted += right;
    if (Seat* seat = seat_of(*e.sequence))
      verified_.push_back(
          {.seat = e.sequence->slot,
           .guesses = std::span(seat->guesses).first(static_cast<std::size_t>(guesses)),
           .accepted = right,
           .ended = e.sequence->finished});
  }
  // From commit to commit where steps overlap, so that it counts when the device stands still.
  const double ns = late_ ? static_cast<double>(process_ns() - record.wall_from_ns) - drafting
                          : static_cast<double>(record.forward_ns + record.sample_ns);
  record.draft_ns = batch.draft_ns;
  record.spec_lost_ns = static_cast<std::int64_t>(policy_->observe(shape, ns, verified_));
}

std::int64_t Speculator::bytes() const {
  std::size_t out = shared_ ? shared_->bytes() : 0;
  for (const Seat& seat : seats_) out += seat.source->bytes();
  return static_cast<std::int64_t>(out);
}

}  // namespace vitrine
