#include "engine/draft_model.h"

#include <algorithm>
#include <cmath>
#include <new>

#include "base/process_clock.h"
#include "engine/cache_groups.h"
#include "models/model.h"

namespace vitrine {

EngineOptions DraftModel::plan_options(const EngineOptions& options, int context,
                                       int draft_context) {
  EngineOptions out = options;
  out.spec = SpecMode::kOff, out.draft = {};
  out.sequences = std::min(options.sequences, kMostSeats);
  out.context = std::min(context, draft_context);
  out.step_tokens = kRows;
  out.commit_delay = 0;
  const std::int64_t most = static_cast<std::int64_t>(out.sequences) * out.context;
  out.kv_tokens = static_cast<int>(std::min<std::int64_t>(options.kv_tokens, most));
  out.trace_mib = 0;
  return out;
}

DraftModel::DraftModel(const EngineOptions& options, Backend& backend, const MemoryPlan& plan)
    : b_(backend),
      plan_(plan),
      ids_(options.draft.ids),
      poison_(options.poison_pages),
      prefix_cache_(options.prefix_cache),
      cache_(cache_groups(plan), plan.page_size),
      seats_(static_cast<std::size_t>(plan.sequences)),
      cost_(StepCost::default_sizes(kRows)),
      scratch_(static_cast<std::size_t>(options.draft.ids)) {
  for (Seat& seat : seats_) {
    Sequence& s = seat.shadow;
    s.tokens.reserve(static_cast<std::size_t>(plan.context));
    s.keys.reserve(static_cast<std::size_t>(plan.context / plan.page_size));
    for (const CacheGroup& g : plan.groups)
      s.tables.emplace_back(plan.page_size, g.spec.window, plan.context);
  }
  batch_.reserve(plan.sequences, kRows, static_cast<int>(plan.groups.size()), 0);
  batched_.reserve(seats_.size()), ran_.reserve(seats_.size());
}

Result<std::unique_ptr<DraftModel>> DraftModel::create(const EngineOptions& options,
                                                       Backend& backend, const MemoryPlan& plan) {
  std::unique_ptr<DraftModel> out(new DraftModel(options, backend, plan));
  VT_RETURN_IF_ERROR(out->load(options));
  return out;
}

Status DraftModel::load(const EngineOptions& options) {
  VT_TRY(model_, load_model(*options.draft.file, b_, {kRows, plan_.context, {}}));
  VT_TRY(scorer_, Scorer::create(*model_, b_, plan_.sequences, kRows));
  VT_TRY(runner_, Runner::create(*model_, b_, *scorer_, plan_, kRows, 1));
  warm_up();
  return Ok{};
}

// A few passes of a row: the first ones are slow, and what they take must be known before one is worth it.
void DraftModel::warm_up() {
  constexpr int kPasses = 6;
  Seat& seat = seats_.front();
  seat.shadow.id = 1, seat.shadow.slot = 0;
  for (int i = 0; i < std::min(kPasses, plan_.context); ++i) {
    if (i == kPasses / 2) cost_ = StepCost(StepCost::default_sizes(kRows));
    seat.shadow.tokens.push_back(0);
    batch_.clear(), batched_.clear();
    add(seat, 1, true);
    run();
  }
  give_back(seat);
  seat.shadow.id = 0;
  seat.shadow.tokens.clear();
}

// ---- seats

DraftModel::Seat* DraftModel::seat_of(const Sequence& s) {
  if (s.slot < 0 || s.slot >= static_cast<int>(seats_.size())) return nullptr;
  Seat& seat = seats_[s.slot];
  return seat.shadow.id == s.id ? &seat : nullptr;
}

void DraftModel::begin(const Sequence& s) {
  if (s.slot < 0 || s.slot >= static_cast<int>(seats_.size())) return;
  Seat& seat = seats_[s.slot];
  Sequence& shadow = seat.shadow;
  give_back(seat);
  shadow.id = s.id, shadow.slot = s.slot;
  shadow.tokens.clear(), shadow.keys.clear();
  shadow.root = hasher_.root(s.request.cache_salt);
  seat.known = 0;
  seat.barred = false;
}

void DraftModel::left(const Sequence& s) {
  Seat* seat = seat_of(s);
  if (seat == nullptr) return;
  give_back(*seat);
  seat->shadow.id = 0;
  seat->matcher.reset();
}

// Its pages stay in the cache, as far as they are named.
void DraftModel::give_back(Seat& seat) {
  for (int g = 0; g < cache_.groups(); ++g) seat.shadow.tables[g].release_all(cache_.pool(g));
  seat.shadow.computed = seat.shadow.named = 0;
  seat.looked_up = false;
}

// What is known now: guesses that turned out otherwise are taken back.
void DraftModel::follow(Seat& seat, const Sequence& s) {
  Sequence& mine = seat.shadow;
  const int known = std::min(static_cast<int>(s.tokens.size()), plan_.context);
  const int most = std::min(known, static_cast<int>(mine.tokens.size()));
  int same = seat.known;
  while (same < most && mine.tokens[same] == s.tokens[same]) ++same;
  // The last row draws: it is computed again even if it was computed as a guess.
  const int keep = std::min(same, known - 1);
  if (keep < mine.computed) {
    for (int g = 0; g < cache_.groups(); ++g) mine.tables[g].truncate(cache_.pool(g), keep);
    mine.computed = keep;
  }
  mine.tokens.resize(static_cast<std::size_t>(same));
  for (; same < known; ++same) {
    const std::int32_t token = s.tokens[same];
    seat.barred = seat.barred || token < 0 || token >= ids_;
    mine.tokens.push_back(token);
  }
  seat.known = known;
}

int DraftModel::behind(const Sequence& s) {
  Seat* seat = seat_of(s);
  if (seat == nullptr || static_cast<int>(s.tokens.size()) > plan_.context) return -1;
  follow(*seat, s);
  if (seat->barred) return -1;
  if (!seat->looked_up) {
    for (int g = 0; g < cache_.groups(); ++g) {
      const int pages = std::min((seat->known + plan_.page_size) / plan_.page_size,
                                 plan_.groups[g].pages_per_sequence);
      if (pages > cache_.pool(g).available()) return -1;
    }
    look_up(*seat);
  }
  return seat->known - seat->shadow.computed;
}

// ---- pages

void DraftModel::look_up(Seat& seat) {
  seat.looked_up = true;
  if (!prefix_cache_) return;
  Sequence& mine = seat.shadow;
  const auto P = static_cast<std::size_t>(plan_.page_size);
  // At least one row is left to draw from.
  const auto whole = static_cast<std::size_t>(seat.known - 1) / P;
  for (std::size_t i = mine.keys.size(); i < whole; ++i)
    mine.keys.push_back(hasher_.extend(i == 0 ? mine.root : mine.keys.back(),
                                       std::span(mine.tokens).subspan(i * P, P)));
  const std::span<const PrefixKey> keys(mine.keys.data(), whole);
  const int pages = cache_.match(keys);
  cache_.adopt(keys, pages, mine.tables);
  mine.named = pages;
  mine.computed = pages * plan_.page_size;
}

bool DraftModel::take_pages(Seat& seat, int end) {
  Sequence& mine = seat.shadow;
  for (int g = 0; g < cache_.groups(); ++g)
    if (mine.tables[g].needed(cache_.pool(g), mine.computed, end) > cache_.pool(g).available())
      return false;
  for (int g = 0; g < cache_.groups(); ++g) {
    const PageCopy copy = mine.tables[g].grow(cache_.pool(g), mine.computed, end);
    if (copy.to != kNoPage) batch_.copies.push_back({g, copy});
  }
  return true;
}

// Of what is known: pages with guesses get no key.
void DraftModel::name_pages(Seat& seat) {
  Sequence& mine = seat.shadow;
  const int P = plan_.page_size, known = std::min(mine.computed, seat.known);
  for (; (mine.named + 1) * P <= known && prefix_cache_; ++mine.named) {
    const auto i = static_cast<std::size_t>(mine.named);
    const std::span<const std::int32_t> tokens(mine.tokens.data() + i * static_cast<std::size_t>(P),
                                               static_cast<std::size_t>(P));
    const PrefixKey parent = i == 0 ? mine.root : mine.keys[i - 1];
    if (mine.keys.size() == i) mine.keys.push_back(hasher_.extend(parent, tokens));
    for (int g = 0; g < cache_.groups(); ++g) {
      const PageId page = mine.tables[g].pages()[i];
      if (page != kNoPage && !cache_.pool(g).named(page))
        cache_.pool(g).name(page, mine.keys[i], parent, mine.named, tokens);
    }
  }
  for (int g = 0; g < cache_.groups(); ++g)
    if (mine.tables[g].windowed()) mine.tables[g].release_behind_window(cache_.pool(g), known);
}

void DraftModel::check_integrity() const {
  for (int g = 0; g < cache_.groups(); ++g) {
    const PagePool& pool = cache_.pool(g);
    std::vector<int> holders(static_cast<std::size_t>(pool.total()), 0);
    for (const Seat& seat : seats_) {
      VT_CHECK(seat.shadow.id != 0 || seat.shadow.tables[g].held() == 0,
               "a seat of the draft model without a sequence holds {} pages",
               seat.shadow.tables[g].held());
      for (const PageId page : seat.shadow.tables[g].pages())
        if (page != kNoPage) ++holders[page];
    }
    for (int page = 0; page < pool.total(); ++page)
      VT_CHECK(holders[page] == pool.holders(page),
               "the draft model's group {}, page {}: {} tables, {} holders", g, page, holders[page],
               pool.holders(page));
  }
}

// ---- passes

// The next rows of a seat, if there are pages for them. What it cannot keep it gives back.
bool DraftModel::add(Seat& seat, int rows, bool draws) {
  Sequence& mine = seat.shadow;
  if (!take_pages(seat, mine.computed + rows)) {
    give_back(seat);
    return false;
  }
  const int entry = static_cast<int>(batch_.entries.size()), row = batch_.tokens;
  batch_.entries.push_back({.sequence = &mine,
                            .first = mine.computed,
                            .count = rows,
                            .row = row,
                            .draws = draws ? 1 : 0,
                            .prefill = rows > 1 || !draws});
  if (draws)
    batch_.scores.push_back({entry, row + rows - 1, mine.computed + rows - 1, true, false});
  batch_.tokens += rows;
  batched_.push_back(&seat);
  return true;
}

void DraftModel::run() {
  const std::int64_t start = process_ns();
  if (poison_) runner_->poison(batch_);
  runner_->run(batch_, passes_++, false);
  runner_->wait(batch_);
  scorer_->each_row(batch_, [this](const ScoreRow& row, std::span<const float> logits) {
    Seat& seat = *batched_[row.entry];
    if (seat.wish != nullptr && !guess(seat, row.position, logits)) seat.wish = nullptr;
  });
  for (std::size_t i = 0; i < batched_.size(); ++i) {
    batched_[i]->shadow.computed += batch_.entries[i].count;
    name_pages(*batched_[i]);
  }
  // They are counted for the step that is planned next otherwise.
  b_.take_work();
  b_.take_op_times();
  cost_.observe(batch_.tokens, static_cast<double>(process_ns() - start));
}

int DraftModel::catch_up(std::span<const Wish> wishes, int rows) {
  rows = std::min(rows, kRows);
  batch_.clear(), batched_.clear();
  for (const Wish& w : wishes) {
    if (batch_.tokens >= rows) break;
    Seat* seat = seat_of(*w.sequence);
    if (seat == nullptr || seat->known - seat->shadow.computed <= kFewRows) continue;
    const int lacks = seat->known - 1 - seat->shadow.computed;
    if (lacks > 0) add(*seat, std::min(lacks, rows - batch_.tokens), false);
  }
  if (batch_.empty()) return 0;
  run();
  return batch_.tokens;
}

void DraftModel::draft(std::span<Wish> wishes, float least) {
  least_ = least;
  batch_.clear(), batched_.clear();
  for (Wish& w : wishes) {
    w.count = 0;
    Seat* seat = seat_of(*w.sequence);
    if (seat == nullptr || w.guesses.empty()) continue;
    const int lacks = seat->known - seat->shadow.computed;
    if (lacks < 1 || lacks > kFewRows || !add(*seat, lacks, true)) continue;
    seat->wish = &w;
  }
  while (!batch_.empty()) {
    run();
    std::swap(batched_, ran_);
    batch_.clear(), batched_.clear();
    for (Seat* seat : ran_) {
      const bool more = seat->wish != nullptr &&
                        seat->wish->count < static_cast<int>(seat->wish->guesses.size()) &&
                        seat->shadow.computed < plan_.context;
      if (!more || !add(*seat, 1, true)) seat->wish = nullptr;
    }
  }
}

// Draws the token after the row at `position` as the target will. False: the draft ends before it.
bool DraftModel::guess(Seat& seat, int position, std::span<const float> logits) {
  Wish& wish = *seat.wish;
  Sequence& s = *wish.sequence;
  Sequence& mine = seat.shadow;
  const bool first = wish.count == 0;
  try {
    auto& matcher = first ? s.matcher : seat.matcher;
    auto& reasoning = first ? s.reasoning : seat.reasoning;
    DrawState::Next next =
        s.next(position, matcher ? &*matcher : nullptr, reasoning ? &*reasoning : nullptr);
    if (next.complete || next.status != LogitsStatus::kOk || next.spec.forced >= ids_) return false;
    next.spec.logprob = true;
    const std::span<const float> shared = logits.first(static_cast<std::size_t>(ids_));
    const Choice choice = s.chain->look(shared, s.history, next.spec, scratch_);
    if (choice.status != LogitsStatus::kOk || s.ends_with(choice.token)) return false;
    // Both draw with the same noise, so even tokens of which the draft is unsure are often right: with our own
    // two models two of five where it says nearly 0, all where it says nearly 1, and on the line in between.
    float probability =
        first ? 1 : wish.guesses[static_cast<std::size_t>(wish.count - 1)].probability;
    if (next.spec.forced < 0) probability *= 0.5f * (1 + std::exp(choice.logprob));
    if (probability < least_) return false;
    if (first && s.matcher) seat.matcher = s.matcher;
    if (first && s.reasoning) seat.reasoning = s.reasoning;
    if (s.matcher && !seat.matcher->accept(choice.token)) return false;
    if (s.reasoning) seat.reasoning->accept(choice.token);
    wish.guesses[static_cast<std::size_t>(wish.count++)] = {choice.token, probability};
    if (static_cast<int>(mine.tokens.size()) < plan_.context) mine.tokens.push_back(choice.token);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace vitrine
