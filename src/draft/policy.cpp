#include "draft/policy.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace vitrine {
namespace {

constexpr double kWorthwhile = 1.05;
// What is known beforehand counts as much as this many guesses.
constexpr double kPriorWeight = 8;
// Steps that decode before drafting may take time: until then too little is known of what they take.
constexpr int kWarm = 8;
// What something else held up says little of what guesses cost: a time counts up to so many times what was
// expected.
constexpr double kMostOver = 2;
// What drafting takes varies: it shares caches with the steps.
constexpr double kMargin = 1.5;
// How often a guess is right that nobody has tried yet.
constexpr double kUntried = 0.75;
// Each step: a half is forgotten after 32 of them for a sequence, whose text changes; after 512 for a
// source. So one that was bad is tried again in the end.
constexpr double kFadeSeat = 0.97857206, kFadeSource = 0.99864711;
// Guesses that are less likely cannot pay.
constexpr double kLeastSurvival = 0.01;

constexpr int kGuessedSteps = 31, kMorePlainSteps = 4;
// A plain step that takes less than this part of what was thought, or so much more, asks for others.
constexpr double kAsThought = 0.85;

// That a guess is right if those before it are, as its source says.
double given_those_before(std::span<const Guess> guesses, int place) {
  const double before = place > 0 ? guesses[place - 1].probability : 1;
  return before > 0 ? std::clamp(guesses[place].probability / before, 0.0, 1.0) : 0;
}

}  // namespace

double DraftPolicy::Record::ratio(double prior) const {
  return (right + kPriorWeight * prior) / (expected + kPriorWeight);
}

double DraftPolicy::Record::rate(double prior) const {
  return (right + kPriorWeight * prior) / (tried + kPriorWeight);
}

void DraftPolicy::Record::fade(double factor) {
  tried *= factor;
  right *= factor;
  expected *= factor;
}

DraftPolicy::DraftPolicy(PolicyOptions options)
    : options_(std::move(options)),
      cost_(options_.sizes),
      of_seats_(static_cast<std::size_t>(options_.seats) * options_.sources * options_.max_guesses),
      of_sources_(static_cast<std::size_t>(options_.sources) * options_.max_guesses) {
  slots_.reserve(static_cast<std::size_t>(options_.seats) * options_.max_guesses);
}

void DraftPolicy::begin(int seat) {
  if (guessed_ > 0) plain_left_ = std::max(plain_left_, 1);
  std::fill_n(of_seats_.begin() + static_cast<std::ptrdiff_t>(at(seat, 0, 0)),
              options_.sources * options_.max_guesses, Record{});
}

double DraftPolicy::acceptance(int seat, int source, int place) const {
  const Record& all = of_sources_[source * options_.max_guesses + place];
  return of_seats_[at(seat, source, place)].ratio(all.ratio(1));
}

// The chance that a guess that is not made yet will be right if those before it are.
double DraftPolicy::rate(int seat, int source, int place) const {
  const Record& all = of_sources_[source * options_.max_guesses + place];
  return of_seats_[at(seat, source, place)].rate(all.rate(kUntried));
}

double DraftPolicy::promise(int seat, int source, int count) const {
  double sum = 0, survival = 1;
  for (int place = 0; place < std::min(count, options_.max_guesses); ++place)
    sum += survival *= std::min(1.0, rate(seat, source, place));
  return sum;
}

double DraftPolicy::promise(const DraftCandidate& c) const {
  double sum = 0, survival = 1;
  const int most = std::min(static_cast<int>(c.guesses.size()), options_.max_guesses);
  for (int place = 0; place < most; ++place)
    sum += survival *=
        std::min(1.0, given_those_before(c.guesses, place) * acceptance(c.seat, c.source, place));
  return sum;
}

bool DraftPolicy::affords(const StepShape& shape, int rows, double drafting_ns) const {
  const double plain = plain_ns(shape);
  return drafts() && decoded_ >= kWarm && rows <= shape.room &&
         cost_.at_most(shape.rows + rows) + kMargin * drafting_ns <= ledger_.room(plain) + plain;
}

int DraftPolicy::depth(const StepShape& shape, std::span<const DraftCandidate> candidates,
                       const DraftingCost& drafting) const {
  if (!drafts() || decoded_ < kWarm || shape.decoding == 0 || candidates.empty()) return 0;
  const auto sequences = static_cast<int>(candidates.size());
  const double plain = plain_ns(shape), token = token_ns(shape);
  const double room = ledger_.room(plain) + plain - shape.drafting_ns - shape.kv_ns;
  const double without = plain / (plain + shape.drafting_ns);
  double best = 0;
  int depth = 0;
  for (int k = 1; k <= options_.max_guesses && k * sequences <= shape.room; ++k) {
    const double spent = drafting.first_ns + (k - 1) * drafting.next_ns;
    if (cost_.at_most(shape.rows + k * sequences) + kMargin * spent > room) break;
    double tokens = 0;
    for (const DraftCandidate& c : candidates) tokens += promise(c.seat, c.source, k);
    const double value = (plain + tokens * token) /
                         (ns(shape.rows + k * sequences, shape) + shape.drafting_ns + spent);
    if (value >= kWorthwhile * without && value > best) best = value, depth = k;
  }
  return depth;
}

// Every guess with the chance that it and all before it are right, the likeliest first. Of equals the
// earlier place in a draft is first, so the guesses of a draft come in their order.
void DraftPolicy::list_slots(std::span<const DraftCandidate> candidates) {
  slots_.clear();
  for (int i = 0; i < static_cast<int>(candidates.size()); ++i) {
    const DraftCandidate& c = candidates[i];
    double survival = 1;
    const int most = std::min(static_cast<int>(c.guesses.size()), options_.max_guesses);
    for (int place = 0; place < most; ++place) {
      survival *=
          std::min(1.0, given_those_before(c.guesses, place) * acceptance(c.seat, c.source, place));
      if (survival < kLeastSurvival) break;
      slots_.push_back({survival, i, place});
    }
  }
  std::sort(slots_.begin(), slots_.end(), [](const Slot& a, const Slot& b) {
    return std::tuple(-a.survival, a.place, a.candidate) <
           std::tuple(-b.survival, b.place, b.candidate);
  });
}

int DraftPolicy::plan(const StepShape& shape, std::span<DraftCandidate> candidates) {
  VT_CHECK(static_cast<int>(candidates.size()) <= options_.seats, "{} drafts for {} seats",
           candidates.size(), options_.seats);
  for (DraftCandidate& c : candidates) c.take = 0;
  if (!drafts() || shape.decoding == 0) return 0;
  list_slots(candidates);
  const double plain = plain_ns(shape), token = token_ns(shape);
  const double without = plain / (plain + shape.drafting_ns);
  const int most = std::min(shape.room, static_cast<int>(slots_.size()));
  // Drafting was made room for by depth(), or is next to nothing.
  const double room = ledger_.room(plain) + plain - shape.kv_ns;
  double best = 0, tokens = 0;
  int take = 0;
  for (int m = 1; m <= most; ++m) {
    if (cost_.at_most(shape.rows + m) > room) break;
    tokens += slots_[m - 1].survival;
    const double value = (plain + tokens * token) / (ns(shape.rows + m, shape) + shape.drafting_ns);
    if (value >= kWorthwhile * without && value > best) best = value, take = m;
  }
  for (int m = 0; m < take; ++m) ++candidates[slots_[m].candidate].take;
  return take;
}

void DraftPolicy::learn(const VerifiedDraft& draft) {
  const int tried = std::min({draft.accepted + (draft.ended ? 0 : 1),
                              static_cast<int>(draft.guesses.size()), options_.max_guesses});
  for (int place = 0; place < tried; ++place) {
    const double expected = given_those_before(draft.guesses, place);
    for (Record* record : {&of_seats_[at(draft.seat, draft.source, place)],
                           &of_sources_[draft.source * options_.max_guesses + place]}) {
      record->tried += 1;
      record->expected += expected;
      record->right += place < draft.accepted;
    }
  }
}

void DraftPolicy::look_at_plain(const StepShape& shape, double wall_ns, bool guesses) {
  if (shape.decoding == 0 || !cost_.known()) return;
  if (guesses) {
    if (++guessed_ % kGuessedSteps == 0) plain_left_ = 1;
    return;
  }
  const bool looking = guessed_ > 0 || plain_left_ > 0;
  const double off = wall_ns / ns(shape.rows, shape);
  plain_left_ = std::max(0, plain_left_ - 1);
  if (looking && (off < kAsThought || off > 1 / kAsThought)) plain_left_ = kMorePlainSteps;
  guessed_ = 0;
}

double DraftPolicy::observe(const StepShape& shape, double wall_ns,
                            std::span<const VerifiedDraft> verified) {
  int guesses = 0, accepted = 0;
  for (const VerifiedDraft& draft : verified) {
    guesses += static_cast<int>(draft.guesses.size());
    accepted += draft.accepted;
  }
  look_at_plain(shape, wall_ns, guesses > 0);
  double lost = 0;
  if (shape.decoding > 0 && cost_.known()) {
    // Against the same step without guesses, and then some for the tokens that it saved.
    const double plain = plain_ns(shape), token = token_ns(shape);
    const double wall = std::min(wall_ns, kMostOver * ns(shape.rows + guesses, shape));
    lost = shape.drafting_ns;
    if (guesses > 0 || shape.waited) lost += wall - plain - accepted * token;
    decoded_ = std::min(decoded_ + 1, kWarm);
    ledger_.step(wall_ns + shape.drafting_ns, lost, plain);
  }
  // What a step without guesses costs is told by those that waited for none.
  if (guesses > 0 || !shape.waited || !cost_.known())
    cost_.observe(shape.rows + guesses, wall_ns - shape.kv_ns);
  for (Record& record : of_seats_) record.fade(kFadeSeat);
  for (Record& record : of_sources_) record.fade(kFadeSource);
  for (const VerifiedDraft& draft : verified) learn(draft);
  return lost;
}

}  // namespace vitrine
