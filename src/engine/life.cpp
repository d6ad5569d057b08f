#include "engine/life.h"

#include <algorithm>

#include "engine/account.h"

namespace vitrine {

const char* life_kind_name(LifeKind kind) {
  static constexpr const char* kNames[kLifeKinds] = {
      "read",    "parse",  "template", "tokenize",  "compile", "handoff", "queue",
      "prefill", "decode", "sat_out",  "preempted", "paused",  "between", "write"};
  return kNames[static_cast<int>(kind)];
}

const char* life_cause_name(LifeCause cause) {
  static constexpr const char* kNames[] = {"none",   "step",   "behind", "seats",  "pages",
                                           "policy", "prompt", "budget", "host",   "beams",
                                           "reader", "held",   "again",  "worker", "engine"};
  return kNames[static_cast<int>(cause)];
}

void LifeBook::begin(std::int64_t at) {
  turns_.reserve(kMostTurns);
  put({.at = at, .kind = LifeKind::kQueue, .cause = LifeCause::kStep});
}

void LifeBook::turn_to(std::int64_t at, Turn turn) {
  turn.at = std::max({at, last_.at, rests_from_});
  if (rested_before(turn.at))
    put({.at = std::max(rests_from_, last_.at), .kind = LifeKind::kBetween});
  rests_from_ = 0;
  put(turn);
}

void LifeBook::end(std::int64_t at) {
  if (rests_from_ > 0 && rests_from_ < at)
    put({.at = std::max(rests_from_, last_.at), .kind = LifeKind::kBetween});
  rests_from_ = 0;
}

void LifeBook::put(const Turn& turn) {
  if (!turns_.empty() && turn.same(last_)) return;
  if (more_ > 0) {
    more_ns_[static_cast<int>(last_.kind)] += turn.at - last_.at;
    ++more_;
  } else if (!turns_.empty() && turns_.back().at == turn.at) {
    turns_.pop_back();  // it took no time
    if (turns_.empty() || !turn.same(turns_.back())) turns_.push_back(turn);
    last_ = turns_.back();
    return;
  } else if (turns_.size() < kMostTurns) {
    turns_.push_back(turn);
  } else {
    more_ = 1, more_from_ = turn.at;
  }
  last_ = turn;
}

void LifeBook::follow(const LifeBook& other, std::int64_t at) {
  const std::int64_t from = turns_.empty() ? at : turns_.front().at;
  turns_.clear();
  for (const Turn& t : other.turns_)
    if (t.at < at) {
      Turn mine = t;
      mine.at = std::max(mine.at, from);
      put(mine);
    }
  if (turns_.empty()) put({.at = from, .kind = LifeKind::kQueue, .cause = LifeCause::kStep});
}

void LifeBook::parts(std::vector<LifePart>& out, std::int64_t end) const {
  const auto add = [&](const Turn& t, std::int64_t until) {
    if (until > t.at)
      out.push_back(
          {.kind = t.kind, .start = t.at, .ns = until - t.at, .cause = t.cause, .by = t.by});
  };
  const Turn rests{.at = std::max(rests_from_, last_.at), .kind = LifeKind::kBetween};
  const bool resting = rests_from_ > 0 && rests.at < end;
  const std::int64_t known = resting ? rests.at : end;
  for (std::size_t i = 0; i < turns_.size(); ++i)
    add(turns_[i], i + 1 < turns_.size() ? turns_[i + 1].at : more_ > 0 ? more_from_ : known);
  if (more_ > 0) {
    std::array<std::int64_t, kLifeKinds> ns = more_ns_;
    ns[static_cast<int>(last_.kind)] += known - last_.at;
    std::int64_t at = more_from_;
    for (int kind = 0; kind < kLifeKinds; ++kind) {
      if (ns[kind] <= 0) continue;
      out.push_back(
          {.kind = static_cast<LifeKind>(kind), .start = at, .ns = ns[kind], .sum_of = more_});
      at += ns[kind];
    }
  }
  if (resting) add(rests, end);
}

std::vector<LifePart> life_of(const Account& a, std::int64_t now) {
  struct Stamp {
    std::int64_t at;
    LifeKind kind;  // of what it ends
    LifeCause cause;
  };
  const Stamps& t = a.stamps;
  std::array<Stamp, 6> stamps{{{t.body, LifeKind::kRead, LifeCause::kNone},
                               {t.taken, LifeKind::kHandoff, LifeCause::kWorker},
                               {t.parsed, LifeKind::kParse, LifeCause::kNone},
                               {t.templated, LifeKind::kTemplate, LifeCause::kNone},
                               {t.tokenized, LifeKind::kTokenize, LifeCause::kNone},
                               {t.compiled, LifeKind::kCompile, LifeCause::kNone}}};
  // A prompt may be tokenized before or after its constraint is compiled.
  std::stable_sort(stamps.begin(), stamps.end(),
                   [](const Stamp& x, const Stamp& y) { return x.at < y.at; });
  std::vector<LifePart> out;
  std::int64_t at = t.received > 0 ? t.received : t.submitted;
  const auto until = [&](std::int64_t end, LifeKind kind, LifeCause cause) {
    if (end <= at) return;
    out.push_back({.kind = kind, .start = at, .ns = end - at, .cause = cause});
    at = end;
  };
  if (t.received > 0)
    for (const Stamp& stamp : stamps) until(stamp.at, stamp.kind, stamp.cause);
  if (t.submitted > 0) {
    until(t.submitted, LifeKind::kHandoff, LifeCause::kEngine);
    a.life.parts(out, t.ended > 0 ? t.ended : now);
    at = std::max(at, t.ended > 0 ? t.ended : now);
  }
  if (a.over()) until(a.written_until(now), LifeKind::kWrite, LifeCause::kNone);
  return out;
}

}  // namespace vitrine
