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

NgramOptions ngram_options(std::size_t bytes) {
  NgramOptions out;
  while (out.window > 256 && NgramSource(out).bytes() > bytes) out.window /= 2;
  return out;
}

}  // namespace

Speculator::Speculator(const EngineOptions& options, int sequences)
    : most_(options.spec_tokens), always_(options.spec_always) {
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
    if (suffix)
      seat.source = std::make_unique<SuffixSource>(own, shared_.get());
    else
      seat.source = std::make_unique<NgramSource>(ngram);
    seat.guesses.resize(static_cast<std::size_t>(most_));
  }
  policy_ = std::make_unique<DraftPolicy>(
      PolicyOptions{.seats = seats,
                    .max_guesses = most_,
                    .sources = 1,
                    .sizes = StepCost::default_sizes(options.step_tokens)});
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

// It draws a token in the next step, which the host knows before the one after it is planned.
bool Speculator::ready(const Sequence& s) {
  return !s.finished && !s.prefilling() && s.in_flight == 0 && !s.paused() && s.left() > 1;
}

// False: it is behind, and goes on beside the next step.
bool Speculator::learn(const Sequence& s, Seat& seat) {
  const auto known = static_cast<int>(s.tokens.size());
  if (seat.learned == known) return true;
  seat.learned = std::min(known, seat.learned + kLearnedAtOnce);
  seat.source->extend(std::span(s.tokens).first(static_cast<std::size_t>(seat.learned)));
  return seat.learned == known;
}

// Its guesses, up to a token that would end it.
int Speculator::guess(const Sequence& s, Seat& seat) {
  const int most = std::min(most_, s.left() - 1);
  const int found =
      seat.source->draft(s.tokens, std::span(seat.guesses).first(static_cast<std::size_t>(most)));
  for (int i = 0; i < found; ++i)
    if (s.ends_with(seat.guesses[i].token)) return i;
  return found;
}

std::int64_t Speculator::propose(std::span<const std::unique_ptr<Sequence>> running,
                                 StepShape shape) {
  for (const auto& s : running)
    if (s->in_flight == 0) s->draft.clear();
  if (!always_ && !policy_->drafts()) return 0;
  const std::int64_t start = process_ns();
  candidates_.clear(), drafting_.clear();
  for (const auto& s : running) {
    Seat* seat = seat_of(*s);
    if (seat == nullptr || !s->request.speculative || s->finished) continue;
    if (!learn(*s, *seat) || !ready(*s)) continue;
    const int count = guess(*s, *seat);
    if (count == 0) continue;
    candidates_.push_back(
        {.seat = s->slot,
         .guesses = std::span(seat->guesses).first(static_cast<std::size_t>(count)),
         .take = count});
    drafting_.push_back(s.get());
  }
  shape.drafting_ns = static_cast<double>(process_ns() - start);
  if (!always_) policy_->plan(shape, candidates_);
  for (std::size_t i = 0; i < candidates_.size(); ++i)
    for (int k = 0; k < candidates_[i].take; ++k)
      drafting_[i]->draft.push_back(candidates_[i].guesses[k].token);
  if (shared_) shared_->learn(kLearnedAtOnce);
  return process_ns() - start;
}

void Speculator::observe(const Batch& batch, StepRecord& record) {
  verified_.clear();
  record.drafted = record.accepted = 0;
  StepShape shape{.rows = batch.tokens, .drafting_ns = static_cast<double>(batch.draft_ns)};
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
  const auto ns = static_cast<double>(record.forward_ns + record.sample_ns);
  record.draft_ns = batch.draft_ns;
  record.spec_lost_ns = static_cast<std::int64_t>(policy_->observe(shape, ns, verified_));
}

std::int64_t Speculator::bytes() const {
  std::size_t out = shared_ ? shared_->bytes() : 0;
  for (const Seat& seat : seats_) out += seat.source->bytes();
  return static_cast<std::int64_t>(out);
}

}  // namespace vitrine
