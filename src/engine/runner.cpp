#include "engine/runner.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "engine/options.h"

namespace vitrine {
namespace {

constexpr std::int64_t kDrawInts = sizeof(DrawRow) / 4;

// Pages of the longest table, up to a power of two.
std::int64_t widest_table(const MemoryPlan& plan) {
  const int pages = (plan.context + plan.page_size - 1) / plan.page_size;
  return std::bit_ceil(static_cast<std::uint32_t>(pages));
}

}  // namespace

Result<std::unique_ptr<Runner>> Runner::create(Model& model, Backend& backend, Scorer& scorer,
                                               const MemoryPlan& plan, int step_tokens, int which) {
  std::unique_ptr<Runner> runner(new Runner(model, backend, scorer, plan, step_tokens, which));
  VT_RETURN_IF_ERROR(runner->allocate());
  return runner;
}

Runner::Runner(Model& model, Backend& backend, Scorer& scorer, const MemoryPlan& plan,
               int step_tokens, int which)
    : model_(model),
      b_(backend),
      scorer_(scorer),
      plan_(plan),
      step_tokens_(step_tokens),
      which_(which),
      async_(backend.asynchronous()) {}

Status Runner::allocate() {
  // Padding beside guesses is a sequence of its own.
  int T = step_tokens_, S = std::min(padded_rows(plan_.sequences), step_tokens_) + 1;
  int groups = static_cast<int>(plan_.groups.size());
  std::int64_t ints =
      T * (kDrawInts + 3 + groups) + (S + 1) + S * widest_table(plan_) * groups + 64;
  VT_TRY(Buffer inputs, b_.allocate(ints * 4));
  inputs_ = {inputs.data(), DType::kI32, {ints}};
  buffers_.push_back(std::move(inputs));
  host_inputs_.resize(static_cast<std::size_t>(ints));
  caches_.resize(model_.info().layers);
  for (const CacheGroup& g : plan_.groups) {
    KvShape shape{g.spec.layout, plan_.page_size};
    std::int64_t pages = g.pages + plan_.spare_pages;
    for (int layer : g.layers) {
      VT_TRY(Buffer buffer, b_.allocate(b_.kv_page_bytes(shape) * pages));
      caches_[layer] = {shape, pages, static_cast<std::byte*>(buffer.data())};
      buffers_.push_back(std::move(buffer));
    }
    slots_.emplace_back().reserve(T);
  }
  indexes_.resize(groups);
  for (auto* v : {&ids_, &positions_, &rows_}) v->reserve(T);
  offsets_.reserve(S + 1);
  sequences_.reserve(S);
  return Ok{};
}

// ---- what a batch is made of

void Runner::fill(const Batch& batch) {
  for (auto* v : {&ids_, &positions_, &rows_}) v->clear();
  for (auto& v : slots_) v.clear();
  sequences_.clear();
  offsets_.assign(1, 0);
  B_ = 1;
  replayable_ = scorer_.deferred();
  for (const BatchEntry& entry : batch.entries) {
    const Sequence& s = *entry.sequence;
    replayable_ = replayable_ && entry.draws == entry.count && !entry.prefill;
    if (entry.count == 0) continue;  // a fork, which has no row of its own
    for (int position = entry.first; position < entry.first + entry.count; ++position) {
      ids_.push_back(s.knows(position) ? s.token_at(position) : scorer_.last_token(s.slot));
      positions_.push_back(position);
      for (std::size_t g = 0; g < slots_.size(); ++g)
        slots_[g].push_back(s.tables[g].slot(position));
    }
    offsets_.push_back(static_cast<std::int32_t>(ids_.size()));
    sequences_.push_back(&s);
    for (const BlockTable& t : s.tables) B_ = std::max(B_, static_cast<int>(t.pages().size()));
  }
  for (const ScoreRow& row : batch.scores) rows_.push_back(row.row);
  for (const PoolRow& row : batch.pools) rows_.push_back(row.row);
  replayable_ = replayable_ && scorer_.replayable(static_cast<int>(ids_.size()));
}

// Padding rows: position 0 on the spare page, not drawn. Where every sequence has one row they have one each too,
// which kernels may tell by the shapes; beside guesses one sequence has them all.
void Runner::pad() {
  const bool guesses = sequences_.size() < ids_.size();
  auto rows =
      static_cast<std::size_t>(std::min(padded_rows(static_cast<int>(ids_.size())), step_tokens_));
  while (ids_.size() < rows) {
    rows_.push_back(static_cast<std::int32_t>(ids_.size()));
    ids_.push_back(0);
    positions_.push_back(0);
    for (std::size_t g = 0; g < slots_.size(); ++g)
      slots_[g].push_back(plan_.groups[g].pages * plan_.page_size);
    if (guesses && sequences_.back() == nullptr) {
      ++offsets_.back();
      continue;
    }
    offsets_.push_back(static_cast<std::int32_t>(ids_.size()));
    sequences_.push_back(nullptr);
  }
  scorer_.pad(static_cast<int>(rows_.size()));
}

// ---- to the backend

void Runner::lay_out() {
  T_ = static_cast<int>(ids_.size()), S_ = static_cast<int>(sequences_.size());
  M_ = static_cast<int>(rows_.size());
  // Tables of a few widths only, for the same reason as rows.
  B_ = static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::max(B_, 8))));
  B_ = std::min(B_, static_cast<int>(widest_table(plan_)));
  std::int64_t end = 0;
  auto take = [&](std::int64_t ints) { return std::exchange(end, end + ints); };
  at_.draws = take(static_cast<std::int64_t>(async_ ? scorer_.draws().size() : 0) * kDrawInts);
  at_.ids = take(T_), at_.positions = take(T_);
  at_.offsets = take(S_ + 1), at_.rows = take(M_);
  at_.groups = end;
  at_.group_stride = T_ + std::int64_t{S_} * B_;
  at_.end = end + at_.group_stride * static_cast<std::int64_t>(slots_.size());
  VT_CHECK(at_.end <= inputs_.dim(0), "{} integers of a step, room for {}", at_.end,
           inputs_.dim(0));
}

void Runner::upload() {
  std::int32_t* host = host_inputs_.data();
  auto put = [&](std::int64_t at, const std::vector<std::int32_t>& from) {
    std::copy(from.begin(), from.end(), host + at);
  };
  if (async_) std::memcpy(host + at_.draws, scorer_.draws().data(), scorer_.draws().size_bytes());
  put(at_.ids, ids_), put(at_.positions, positions_);
  put(at_.offsets, offsets_), put(at_.rows, rows_);
  for (std::size_t g = 0; g < slots_.size(); ++g) {
    std::int64_t base = at_.groups + static_cast<std::int64_t>(g) * at_.group_stride;
    put(base, slots_[g]);
    std::int32_t* table = host + base + T_;
    for (const Sequence* s : sequences_) {
      std::size_t used = 1;
      if (s == nullptr) {
        table[0] = plan_.groups[g].pages;
      } else {
        const auto& pages = s->tables[g].pages();
        used = pages.size();
        std::copy(pages.begin(), pages.end(), table);
      }
      std::fill(table + used, table + B_, -1);
      table += B_;
    }
  }
  b_.write(inputs_.data, host, at_.end * 4);
}

void Runner::set_input() {
  auto view = [&](std::int64_t at, Shape shape) {
    return Tensor{inputs_.i32() + at, DType::kI32, shape};
  };
  Tensor positions = view(at_.positions, {T_}), offsets = view(at_.offsets, {S_ + 1});
  for (std::size_t g = 0; g < indexes_.size(); ++g) {
    std::int64_t base = at_.groups + static_cast<std::int64_t>(g) * at_.group_stride;
    indexes_[g] = {positions, offsets, view(base, {T_}), view(base + T_, {S_, B_})};
  }
  input_ = {.ids = view(at_.ids, {T_}),
            .positions = positions,
            .out_rows = view(at_.rows, {M_}),
            .groups = indexes_,
            .caches = caches_,
            .group_of = plan_.group_of};
}

void Runner::copy_pages(const Batch& batch) {
  for (const Batch::Copy& copy : batch.copies)
    for (int layer : plan_.groups[copy.group].layers)
      b_.copy_kv_page(caches_[layer], copy.pages.from, copy.pages.to);
}

void Runner::poison(const Batch& batch) {
  for (const BatchEntry& entry : batch.entries)
    for (std::size_t g = 0; g < plan_.groups.size(); ++g) {
      const auto& pages = entry.sequence->tables[g].pages();
      int first = (entry.first + plan_.page_size - 1) / plan_.page_size;
      int end = (entry.first + entry.count + plan_.page_size - 1) / plan_.page_size;
      for (int i = first; i < end; ++i)
        for (int layer : plan_.groups[g].layers) {
          KvCache& cache = caches_[layer];
          std::vector<std::byte> nan(b_.kv_page_bytes(cache.shape), std::byte{0xff});
          auto bytes = static_cast<std::int64_t>(nan.size());
          b_.write(cache.data + pages[i] * bytes, nan.data(), bytes);
        }
    }
}

// ---- a step

void Runner::run(Batch& batch, std::uint64_t step, bool follows) {
  batch.flight = static_cast<int>(runs_++ % tickets_.size());
  batch_ = &batch;
  scorer_.begin(batch);
  fill(batch);
  if (replayable_) pad();
  lay_out();
  copy_pages(batch);
  upload();
  set_input();
  b_.begin_step(step, follows);
  compute();
  tickets_[batch.flight] = b_.end_step();
  batch.rows_run = T_;
  batch.scores_run = replayable_ ? M_ : static_cast<int>(batch.scores.size());
}

void Runner::compute() {
  if (!replayable_) return forward_and_score();
  // Draws go to the memory of the flight, so that it is part of what is replayed.
  static_assert(EngineRanges::step_tokens.most < 1 << 20 &&
                EngineRanges::sequences.most < (1 << 16) - 1);
  const auto table = static_cast<unsigned>(std::countr_zero(static_cast<unsigned>(B_)));
  auto key = (static_cast<std::uint64_t>(which_) << 60) + (static_cast<std::uint64_t>(T_) << 32) +
             (static_cast<std::uint64_t>(S_) << 16) + (std::uint64_t{table} << 8) +
             (static_cast<std::uint64_t>(batch_->flight) << 1) + (scorer_.greedy() ? 1 : 0);
  b_.repeat(key, [this] { forward_and_score(); });
  scorer_.fetch(*batch_);
}

void Runner::forward_and_score() {
  model_.forward(b_, input_, scorer_.hidden(M_));
  if (!scorer_.deferred()) return;
  scorer_.score(*batch_, M_, reinterpret_cast<const DrawRow*>(inputs_.i32() + at_.draws),
                replayable_);
}

}  // namespace vitrine
