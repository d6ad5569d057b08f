#include "engine/speculator.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/process_clock.h"

namespace vitrine {
namespace {

// Tokens that a source learns of a sequence beside one step, so that a long prompt holds up nobody.
constexpr int kLearnedAtOnce = 256;
// The part of the memory for outputs of sequences that have ended.
constexpr std::size_t kSharedPart = 4;
// Catching up with a prompt may take this part of the time that the tokens to come take without guesses. It is
// charged bit by bit until they are there, over so many steps at least.
constexpr double kCatchUpPart = 0.1;
constexpr int kChargedOver = 64;
// A time counts up to so many times what was expected: something else held it up.
constexpr double kMostOver = 4;
// Half of the share of steps with guesses is forgotten after 22 steps.
constexpr double kFadeUse = 1.0 / 32;

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

int index_of(GuessSource source) { return static_cast<int>(source); }

}  // namespace

Speculator::Speculator(const EngineOptions& options, int sequences, ModelSource* model)
    : most_(options.spec_tokens),
      always_(options.spec_always),
      late_(options.commit_delay > 0),
      model_(model) {
  if (options.spec == SpecMode::kOff) return;
  const bool ngram = options.spec == SpecMode::kNgram, text = options.spec != SpecMode::kDraft;
  text_kind_ = ngram ? GuessSource::kNgram : GuessSource::kSuffix;
  const std::size_t all = mib(options.spec_mib);
  if (text && !ngram) shared_ = std::make_unique<SharedSuffixes>(all / kSharedPart);
  const std::size_t left = all - (shared_ ? shared_->bytes() : 0);
  const int seats = std::min(sequences, kMostSeats);
  SuffixOptions own;
  own.local_bytes = std::min(own.local_bytes, left / static_cast<std::size_t>(seats));
  const NgramOptions lookup = ngram_options(left / static_cast<std::size_t>(seats));
  for (int i = 0; i < seats; ++i) {
    Seat& seat = seats_.emplace_back();
    if (options.spec_source)
      seat.text = options.spec_source();
    else if (ngram)
      seat.text = std::make_unique<NgramSource>(lookup);
    else if (text)
      seat.text = std::make_unique<SuffixSource>(own, shared_.get());
    const int most = most_ + (late_ ? options.commit_delay : 0);
    seat.guesses.resize(static_cast<std::size_t>(most));
    seat.others.resize(static_cast<std::size_t>(most));
  }
  policy_ = std::make_unique<DraftPolicy>(PolicyOptions{.seats = seats,
                                                        .max_guesses = most_,
                                                        .sources = kGuessSources,
                                                        .sizes = step_sizes(options)});
  candidates_.reserve(seats_.size());
  drafting_.reserve(seats_.size());
  wishes_.reserve(seats_.size());
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
  seat.learned = seat.count = 0;
  if (seat.text) seat.text->begin(s.request.cache_salt);
  seat.prediction.expect(s.request.prediction, s.prompt);
  policy_->begin(s.slot);
  if (model_ != nullptr && s.request.speculative) model_->begin(s);
}

void Speculator::left(const Sequence& s) {
  if (model_ != nullptr) model_->left(s);
}

void Speculator::ended(const Sequence& s) {
  Seat* seat = seat_of(s);
  if (seat == nullptr) return;
  seat->prediction.expect(nullptr, 0);
  if (seat->text && s.request.speculative)
    seat->text->finish(std::span(s.tokens).subspan(static_cast<std::size_t>(s.prompt)));
}

// It draws a token in the next step, or would if all were committed before. `left`: read once, since its reader may
// hold it at any time.
bool Speculator::ready(const Sequence& s, int left) {
  return !s.finished && !s.prefilling() && !s.waits() && !s.paused() && left > 1;
}

// False: it is behind, and goes on beside the next step.
bool Speculator::learn(const Sequence& s, Seat& seat) {
  const auto known = static_cast<int>(s.tokens.size());
  if (seat.learned == known) return true;
  seat.learned = std::min(known, seat.learned + kLearnedAtOnce);
  const auto tokens = std::span(s.tokens).first(static_cast<std::size_t>(seat.learned));
  if (seat.text) seat.text->extend(tokens);
  seat.prediction.extend(tokens);
  return seat.learned == known;
}

DraftCandidate Speculator::candidate(const Sequence& s, const Seat& seat) const {
  return {.seat = s.slot,
          .source = index_of(seat.source),
          .guesses = std::span(seat.guesses)
                         .subspan(static_cast<std::size_t>(seat.ahead),
                                  static_cast<std::size_t>(seat.count)),
          .take = seat.count};
}

// A source's guesses, up to a token that would end the sequence, if they promise more than those before. The first
// ones are those for its tokens in flight.
void Speculator::guess(const Sequence& s, Seat& seat, int most, DraftSource& source,
                       GuessSource kind) {
  const int ahead = s.in_flight;
  most += ahead;
  const int found =
      source.draft(s.tokens, std::span(seat.others).first(static_cast<std::size_t>(most)));
  int count = 0;
  while (count < found && !s.ends_with(seat.others[count].token)) ++count;
  count -= ahead;
  if (count <= 0) return;
  const DraftCandidate other{
      .seat = s.slot,
      .source = index_of(kind),
      .guesses = std::span(seat.others)
                     .subspan(static_cast<std::size_t>(ahead), static_cast<std::size_t>(count))};
  if (seat.count > 0 && policy_->promise(other) <= policy_->promise(candidate(s, seat))) return;
  std::swap(seat.guesses, seat.others);
  seat.source = kind, seat.ahead = ahead, seat.count = count;
}

void Speculator::guess(const Sequence& s, Seat& seat, int most) {
  guess(s, seat, most, seat.prediction, GuessSource::kPrediction);
  if (seat.text) guess(s, seat, most, *seat.text, text_kind_);
}

// Whether the sequence will write enough for the time that catching up with it takes.
bool Speculator::pays(const ModelSource::Wish& wish, int behind, double token_ns) const {
  const double passes = std::max(1.0, behind / static_cast<double>(kLearnedAtOnce));
  return always_ || passes * model_->pass_ns(std::min(behind, kLearnedAtOnce)) <=
                        kCatchUpPart * wish.left * token_ns;
}

// What is known of costs is out of date where nothing is tried: a few short drafts are made now and then, more
// and more rarely, as far as the ledger has room for them. 0: not now.
int Speculator::explore(const StepShape& shape, double drafting_ns) {
  constexpr int kTries = 4, kDepth = 2, kMostRarely = 4096;
  if (++in_vain_ <= explore_after_) return 0;
  if (in_vain_ > explore_after_ + kTries) {
    in_vain_ = 0;
    explore_after_ = std::min(2 * explore_after_, kMostRarely);
    return 0;
  }
  const auto sequences = static_cast<int>(wishes_.size());
  return policy_->affords(shape, kDepth * sequences, drafting_ns) ? kDepth : 0;
}

// For those of wishes_ for which it promises more than what they have.
void Speculator::draft_by_model(const StepShape& shape) {
  candidates_.clear();
  const double token = policy_->token_ns(shape);
  int rows = 0;
  double catching_up = 0, each = 0;  // in all, and a step's part of it
  std::erase_if(wishes_, [&](const ModelSource::Wish& w) {
    const int slot = w.sequence->slot, behind = model_->behind(*w.sequence);
    const Seat& seat = seats_[slot];
    const int model = index_of(GuessSource::kDraft);
    if (behind < 0 || !pays(w, behind, token)) return true;
    if (seat.count > 0 && policy_->promise(candidate(*w.sequence, seat)) >=
                              policy_->promise(slot, model, static_cast<int>(w.guesses.size())))
      return true;
    candidates_.push_back({.seat = slot, .source = model, .guesses = {}});
    rows += std::min(behind, 2);
    if (behind > 2) {
      const double ns = model_->pass_ns(std::min(behind, kLearnedAtOnce));
      catching_up += ns, each += ns / std::max(kChargedOver, w.left);
    }
    return false;
  });
  const int sequences = static_cast<int>(wishes_.size());
  if (sequences == 0) return;
  const DraftingCost cost{.first_ns = model_->pass_ns(rows) + each,
                          .next_ns = model_->pass_ns(sequences)};
  int depth = always_ ? most_ : policy_->depth(shape, candidates_, cost);
  if (depth > 0)
    in_vain_ = 0, explore_after_ = 32;
  else
    depth = explore(shape, catching_up + cost.first_ns + cost.next_ns);
  if (depth == 0) return;
  // It goes on from tokens that are known. The pass would wait for the step in flight anyway.
  for (const ModelSource::Wish& w : wishes_)
    settles_ = settles_ || (w.sequence->in_flight > 0 && !w.sequence->waits_for_host);
  if (settles_) return;
  exploring_ = in_vain_ > 0;
  std::int64_t start = process_ns();
  if (const int rows_caught = model_->catch_up(wishes_, kLearnedAtOnce); rows_caught > 0) {
    const double most = kMostOver * model_->pass_ns(rows_caught);
    debt_ns_ += std::min(static_cast<double>(process_ns() - start), most);
    int left = kChargedOver;
    for (const ModelSource::Wish& w : wishes_) left = std::max(left, w.left);
    debt_part_ns_ = debt_ns_ / left;
  }
  const std::int64_t caught = process_ns();
  for (ModelSource::Wish& w : wishes_)
    w.guesses = w.guesses.first(std::min(w.guesses.size(), static_cast<std::size_t>(depth)));
  // A guess that saves less than its row and its pass take is not made. Sources may be surer than they say.
  const double least =
      always_ ? 0 : 0.5 * (policy_->row_ns(shape, sequences) + cost.next_ns / sequences) / token;
  model_->draft(wishes_, static_cast<float>(least));
  model_ns_ = process_ns() - start;
  // Not charged: what catching up took, which is bit by bit, and what held the drafting up.
  const auto took = static_cast<double>(process_ns() - caught);
  const double most = kMostOver * (cost.first_ns + (depth - 1) * cost.next_ns);
  uncharged_ns_ = static_cast<double>(caught - start) + std::max(0.0, took - most);
  for (const ModelSource::Wish& w : wishes_) {
    if (w.count == 0) continue;
    Seat& seat = seats_[w.sequence->slot];
    std::swap(seat.guesses, seat.others);
    seat.source = GuessSource::kDraft, seat.ahead = 0, seat.count = w.count;
  }
}

void Speculator::draft(std::span<const std::unique_ptr<Sequence>> running, const StepShape& shape) {
  waited_ = std::exchange(settles_, false);
  for (const auto& s : running)
    if (Seat* seat = seat_of(*s)) seat->count = 0;
  took_ns_ = model_ns_ = 0;
  charged_ns_ = uncharged_ns_ = 0;
  exploring_ = false;
  wanted_ = true;
  if (!always_ && !policy_->drafts()) return;
  const std::int64_t start = process_ns();
  bool any = false;  // of guesses that cost nothing
  wishes_.clear();
  for (const auto& s : running) {
    Seat* seat = seat_of(*s);
    if (seat == nullptr || !s->request.speculative || s->finished) continue;
    const bool learned = learn(*s, *seat);
    const int left = s->left(), most = std::min(most_, left - 1);
    if (!ready(*s, left)) continue;
    if (learned) guess(*s, *seat, most);
    any = any || seat->count > 0;
    if (model_ == nullptr) continue;
    wishes_.push_back(
        {s.get(), left, std::span(seat->others).first(static_cast<std::size_t>(most))});
  }
  if (model_ != nullptr && !wishes_.empty()) draft_by_model(shape);
  wanted_ = !wishes_.empty() || any;
  const double debt = std::min(debt_ns_, debt_part_ns_);
  debt_ns_ -= debt;
  took_ns_ = process_ns() - start;
  charged_ns_ = static_cast<double>(took_ns_) - uncharged_ns_ + debt;
  if (shared_) shared_->learn(kLearnedAtOnce);
}

void Speculator::propose(std::span<const std::unique_ptr<Sequence>> running, StepShape shape,
                         Batch& batch) {
  const std::int64_t start = process_ns();
  candidates_.clear(), drafting_.clear();
  for (const auto& s : running) {
    if (s->in_flight == 0) s->draft.clear();
    const Seat* seat = seat_of(*s);
    if (seat == nullptr || seat->count == 0 || s->finished || s->waits()) continue;
    candidates_.push_back(candidate(*s, *seat));
    drafting_.push_back(s.get());
  }
  shape.drafting_ns = charged_ns_;
  if (exploring_) {
    for (DraftCandidate& c : candidates_)
      if (c.source != index_of(GuessSource::kDraft)) c.take = 0;
  } else if (!always_) {
    policy_->plan(shape, candidates_);
  }
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    Sequence& s = *drafting_[i];
    if (candidates_[i].take == 0) continue;
    // One whose tokens the host draws sits out a step in any case.
    settles_ = settles_ || (late_ && !s.waits_for_host);
    if (s.in_flight > 0) continue;
    s.draft_source = static_cast<GuessSource>(candidates_[i].source);
    for (int k = 0; k < candidates_[i].take; ++k)
      s.draft.push_back(candidates_[i].guesses[k].token);
  }
  const std::int64_t took = process_ns() - start;
  batch.draft_ns = took_ns_ + took;
  batch.model_draft_ns = model_ns_;
  batch.charged_ns = charged_ns_ + static_cast<double>(took);
  batch.waited = waited_;
}

// By source: what making the guesses took, their part of what the step took beyond one without, less what
// the right ones saved.
void Speculator::charge(const Batch& batch, const StepShape& shape, double wall,
                        StepRecord& record) {
  const double plain = policy_->plain_ns(shape), token = policy_->token_ns(shape);
  const double more = record.drafted > 0 ? (wall - plain) / record.drafted : 0;
  const std::int64_t model = seats_.front().text ? batch.model_draft_ns : batch.draft_ns;
  if (model > 0) record.by_source.of(GuessSource::kDraft).draft_ns = model;
  if (model < batch.draft_ns) record.by_source.of(text_kind_).draft_ns = batch.draft_ns - model;
  for (SourceShare& share : record.by_source) {
    if (plain <= 0) continue;
    share.lost_ns = static_cast<std::int64_t>(share.drafted * more - share.accepted * token);
    if (!late_ || batch.waited) share.lost_ns += share.draft_ns;
  }
}

void Speculator::observe(const Batch& batch, StepRecord& record) {
  verified_.clear();
  record.drafted = record.accepted = 0;
  record.by_source = {};
  // Where the next step is planned while one runs, nobody waits for guesses.
  StepShape shape{.rows = batch.tokens,
                  .drafting_ns = late_ && !batch.waited ? 0 : batch.charged_ns,
                  .waited = batch.waited};
  for (std::size_t i = 0; i < batch.entries.size(); ++i) {
    const BatchEntry& e = batch.entries[i];
    if (e.prefill || e.draws == 0) continue;
    ++shape.decoding;
    if (e.draws == 1) continue;
    // What was drawn behind the end of a text does not count.
    const int kept = i < record.entries.size() ? record.entries[i].drawn : e.tokens;
    const int guesses = e.draws - 1, right = std::clamp(e.tokens - 1, 0, kept);
    shape.rows -= guesses;
    record.drafted += guesses, record.accepted += right;
    Seat* seat = seat_of(*e.sequence);
    if (seat == nullptr) continue;
    const GuessSource source = e.sequence->draft_source;
    SourceShare& share = record.by_source.of(source);
    ++share.drafts, share.drafted += guesses, share.accepted += right;
    verified_.push_back(
        {.seat = e.sequence->slot,
         .source = index_of(source),
         .guesses = std::span(seat->guesses).first(static_cast<std::size_t>(guesses)),
         .accepted = right,
         .ended = e.sequence->finished});
  }
  // From commit to commit where steps overlap, so that it counts when the device stands still.
  const auto drafting = static_cast<double>(batch.waited ? batch.draft_ns : 0);
  const double ns = late_ ? static_cast<double>(process_ns() - record.wall_from_ns) - drafting
                          : static_cast<double>(record.forward_ns + record.sample_ns);
  record.draft_ns = batch.draft_ns;
  charge(batch, shape, ns, record);
  record.spec_lost_ns = static_cast<std::int64_t>(policy_->observe(shape, ns, verified_));
  if (shape.decoding == 0 || !wanted_ || always_) return;
  use_ += kFadeUse * ((record.drafted > 0) - use_);
  const bool active = active_ ? use_ > 0.05 : use_ > 0.5;
  if (active != std::exchange(active_, active)) told_ = false;
}

void Speculator::tell() {
  if (std::exchange(told_, true)) return;
  if (active_) {
    LogLine(LogLevel::kInfo, "speculation is on again");
    return;
  }
  const bool load = policy_->ledger().on();
  LogLine(LogLevel::kInfo, "speculation rests: it would make steps slower")
      .field("why", std::string_view(load ? "guesses are not worth their rows under this load"
                                          : "too many guesses were wrong"));
}

std::int64_t Speculator::bytes() const {
  std::size_t out = shared_ ? shared_->bytes() : 0;
  for (const Seat& seat : seats_)
    if (seat.text) out += seat.text->bytes();
  return static_cast<std::int64_t>(out);
}

}  // namespace vitrine
