#include "engine/runner.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "sampling/rng.h"

namespace vitrine {
namespace {

constexpr std::int64_t kDrawInts = sizeof(DrawRow) / 4;

// Rows to which a step that only decodes is padded.
int padded_rows(int n) {
  auto to = [n](int unit) { return (n + unit - 1) / unit * unit; };
  return n <= 8 ? n : n <= 64 ? to(8) : n <= 256 ? to(16) : to(64);
}

}  // namespace

Result<std::unique_ptr<Runner>> Runner::create(Model& model, Backend& backend,
                                               const MemoryPlan& plan, int step_tokens) {
  auto runner = std::unique_ptr<Runner>(new Runner(model, backend, plan, step_tokens));
  VT_RETURN_IF_ERROR(runner->allocate());
  return runner;
}

Runner::Runner(Model& model, Backend& backend, const MemoryPlan& plan, int step_tokens)
    : model_(model),
      b_(backend),
      plan_(plan),
      step_tokens_(step_tokens),
      slice_rows_(std::min(backend.head_rows(), step_tokens)),
      async_(backend.asynchronous()) {}

Result<Tensor> Runner::make(DType dtype, Shape shape) {
  VT_TRY(Buffer buffer, b_.allocate(shape.elements() * 4));
  Tensor t{buffer.data(), dtype, shape};
  buffers_.push_back(std::move(buffer));
  return t;
}

Status Runner::allocate() {
  int T = step_tokens_, S = std::min(padded_rows(plan_.sequences), step_tokens_);
  int groups = static_cast<int>(plan_.groups.size());
  std::int64_t B = std::bit_ceil(
      static_cast<std::uint64_t>((plan_.context + plan_.page_size - 1) / plan_.page_size));
  std::int64_t V = model_.info().vocab;
  std::int64_t ints = T * (kDrawInts + 3 + groups) + (S + 1) + S * B * groups + 64;
  VT_TRY(inputs_, make(DType::kI32, {ints}));
  host_inputs_.resize(static_cast<std::size_t>(ints));
  VT_TRY(last_, make(DType::kI32, {plan_.sequences}));
  if (async_) b_.feed_from(last_);
  VT_TRY(hidden_, make(DType::kF32, {T, model_.info().dim}));
  VT_TRY(logits_, make(DType::kF32, {slice_rows_, V}));
  caches_.resize(model_.info().layers);
  for (const CacheGroup& g : plan_.groups) {
    KvShape shape{g.spec.kv_heads, g.spec.head_dim, plan_.page_size, plan_.kv_dtype};
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
  draws_.reserve(T);
  last_tokens_.resize(plan_.sequences);
  for (Flight& f : flights_) {
    f.wanted.reserve(T), f.pooled.reserve(T);
    if (!async_) continue;
    VT_TRY(f.drawn, b_.allocate_shared(T * static_cast<std::int64_t>(sizeof(DrawnRow))));
    VT_TRY(f.logits, b_.allocate_shared(kHostRows * V * 4));
  }
  staging_.resize(
      static_cast<std::size_t>(std::max<std::int64_t>(slice_rows_ * V, model_.info().dim)));
  current_ = &flights_[0];
  return Ok{};
}

// ---- what a batch is made of

void Runner::want(const BatchEntry& entry, int index, int position, int row) {
  const Sequence& s = *entry.sequence;
  int last = entry.count > 0 ? entry.first + entry.count - 1 : entry.first - 1;
  bool asked = s.wants_logits(position), sampled = entry.sample && position == last;
  if (!asked && !sampled) return;
  bool draw = sampled && s.device_draw.has_value() && async_;
  rows_.push_back(row);
  DrawRow d;
  if (draw) {
    if (s.device_draw->top_k != 1)
      d.bits = random_bits(s.seed, static_cast<std::uint32_t>(s.choice),
                           static_cast<std::uint64_t>(position) + 1);
    d.scale = s.device_draw->scale, d.top_p = s.device_draw->top_p;
    d.max_nats = s.device_draw->max_nats, d.top_k = s.device_draw->top_k;
    d.slot = s.slot;
  }
  draws_.push_back(d);
  current_->wanted.push_back({index, position, draw, asked || !draw ? host_rows_++ : -1});
}

void Runner::fill(const Batch& batch) {
  current_->wanted.clear(), current_->pooled.clear();
  for (auto* v : {&ids_, &positions_, &rows_}) v->clear();
  for (auto& v : slots_) v.clear();
  draws_.clear(), sequences_.clear();
  offsets_.assign(1, 0);
  B_ = 1;
  host_rows_ = 0;
  replayable_ = async_;
  for (std::size_t e = 0; e < batch.entries.size(); ++e) {
    const BatchEntry& entry = batch.entries[e];
    const Sequence& s = *entry.sequence;
    int index = static_cast<int>(e);
    replayable_ = replayable_ && entry.count == 1 && entry.sample && !entry.prefill;
    if (entry.count == 0) {  // a fork follows its source: the last row so far
      want(entry, index, entry.first - 1, static_cast<int>(ids_.size()) - 1);
      continue;
    }
    for (int i = 0; i < entry.count; ++i) {
      int position = entry.first + i, row = static_cast<int>(ids_.size());
      bool known = position < static_cast<int>(s.tokens.size());
      ids_.push_back(known ? s.tokens[position] : async_ ? -1 - s.slot : last_tokens_[s.slot]);
      positions_.push_back(position);
      for (std::size_t g = 0; g < slots_.size(); ++g)
        slots_[g].push_back(s.tables[g].slot(position));
      want(entry, index, position, row);
      if (s.wants_hidden(position)) current_->pooled.push_back({index, position, row});
    }
    offsets_.push_back(static_cast<std::int32_t>(ids_.size()));
    sequences_.push_back(&s);
    for (const BlockTable& t : s.tables) B_ = std::max(B_, static_cast<int>(t.pages().size()));
  }
  for (const Pooled& p : current_->pooled) rows_.push_back(p.row);
  current_->deferred = async_ && host_rows_ <= kHostRows && current_->pooled.empty();
  replayable_ = replayable_ && (host_rows_ == 0 || static_cast<int>(ids_.size()) <= slice_rows_);
}

// Rows of nobody: position 0 on the spare page, not drawn.
void Runner::pad() {
  auto rows =
      static_cast<std::size_t>(std::min(padded_rows(static_cast<int>(ids_.size())), step_tokens_));
  while (ids_.size() < rows) {
    rows_.push_back(static_cast<std::int32_t>(ids_.size()));
    ids_.push_back(0);
    positions_.push_back(0);
    for (std::size_t g = 0; g < slots_.size(); ++g)
      slots_[g].push_back(plan_.groups[g].pages * plan_.page_size);
    offsets_.push_back(static_cast<std::int32_t>(ids_.size()));
    sequences_.push_back(nullptr);
    draws_.push_back({});
  }
}

// ---- to the backend

void Runner::lay_out() {
  T_ = static_cast<int>(ids_.size()), S_ = static_cast<int>(sequences_.size());
  M_ = static_cast<int>(rows_.size());
  // Tables of a few widths only, for the same reason as rows.
  B_ = static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::max(B_, 8))));
  B_ = std::min(B_, static_cast<int>(std::bit_ceil(static_cast<unsigned>(
                        (plan_.context + plan_.page_size - 1) / plan_.page_size))));
  std::int64_t end = 0;
  auto take = [&](std::int64_t ints) { return std::exchange(end, end + ints); };
  at_.draws = take(async_ ? M_ * kDrawInts : 0);
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
  if (async_) std::memcpy(host + at_.draws, draws_.data(), draws_.size() * sizeof(DrawRow));
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

ModelInput Runner::input() const {
  auto view = [&](std::int64_t at, Shape shape) {
    return Tensor{inputs_.i32() + at, DType::kI32, shape};
  };
  ModelInput in;
  in.ids = view(at_.ids, {T_});
  in.positions = view(at_.positions, {T_});
  in.out_rows = view(at_.rows, {M_});
  in.groups = indexes_;
  in.caches = caches_;
  in.group_of = plan_.group_of;
  return in;
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
  batch.flight = static_cast<int>(runs_++ % flights_.size());
  current_ = &flights_[batch.flight];
  fill(batch);
  if (replayable_) pad();
  lay_out();
  copy_pages(batch);
  upload();
  for (std::size_t g = 0; g < indexes_.size(); ++g) {
    std::int32_t* base =
        inputs_.i32() + at_.groups + static_cast<std::int64_t>(g) * at_.group_stride;
    indexes_[g] = {{inputs_.i32() + at_.positions, DType::kI32, {T_}},
                   {inputs_.i32() + at_.offsets, DType::kI32, {S_ + 1}},
                   {base, DType::kI32, {T_}},
                   {base + T_, DType::kI32, {S_, B_}}};
  }
  b_.begin_step(step, follows);
  compute(batch);
  current_->ticket = b_.end_step();
}

void Runner::compute(const Batch&) {
  ModelInput in = input();
  if (!current_->deferred) {
    model_.forward(b_, in, hidden_.rows(M_));
    return;
  }
  bool greedy = std::all_of(draws_.begin(), draws_.end(),
                            [](const DrawRow& d) { return d.slot < 0 || d.top_k == 1; });
  auto calls = [&] {
    model_.forward(b_, in, hidden_.rows(M_));
    compute_heads(M_, greedy);
  };
  // Draws go to the memory of the flight, so that it is part of what is replayed.
  auto key = (static_cast<std::uint64_t>(T_) << 32) + (static_cast<std::uint64_t>(B_) << 8) +
             (static_cast<std::uint64_t>(current_ - flights_.data()) << 1) + (greedy ? 1 : 0);
  if (!replayable_) return calls();
  b_.repeat(key, calls);
  std::int64_t V = model_.info().vocab;
  for (std::size_t i = 0; i < current_->wanted.size(); ++i)
    if (int row = current_->wanted[i].host_row; row >= 0)
      b_.read_later(static_cast<float*>(current_->logits.data()) + row * V,
                    logits_.f32() + static_cast<std::int64_t>(i) * V, V * 4);
}

// Logits and draws, a slice of rows at a time. In a step that is not replayed, the host's rows are
// copied before the next slice takes their place.
void Runner::compute_heads(std::int64_t M, bool greedy) {
  std::int64_t V = model_.info().vocab;
  auto* draws = reinterpret_cast<const DrawRow*>(inputs_.i32() + at_.draws);
  for (std::int64_t first = 0; first < M; first += slice_rows_) {
    std::int64_t n = std::min<std::int64_t>(slice_rows_, M - first);
    Tensor logits = logits_.rows(n);
    model_.head(b_, logits, hidden_.rows(first, n));
    b_.draw(current_->drawn_rows() + first, last_, draws + first, logits, greedy);
    for (std::int64_t i = first; i < first + n && !replayable_; ++i)
      if (int row = current_->wanted[i].host_row; row >= 0)
        b_.read_later(static_cast<float*>(current_->logits.data()) + row * V,
                      logits.f32() + (i - first) * V, V * 4);
  }
}

StepTimes Runner::wait(const Batch& batch) { return b_.wait(flights_[batch.flight].ticket); }

void Runner::results(Batch& batch, const UseRow& use, const UseRow& pool) {
  const Flight& f = flights_[batch.flight];
  auto V = static_cast<std::size_t>(model_.info().vocab);
  if (f.deferred) {
    for (std::size_t i = 0; i < f.wanted.size(); ++i) {
      const Wanted& w = f.wanted[i];
      if (!w.draw) continue;
      const DrawnRow& drawn = f.drawn_rows()[i];
      batch.entries[w.entry].sampled = drawn.token;
      batch.entries[w.entry].status = static_cast<LogitsStatus>(drawn.status);
      batch.entries[w.entry].drawn = true;
    }
    auto* rows = static_cast<const float*>(f.logits.data());
    for (const Wanted& w : f.wanted)
      if (w.host_row >= 0) use(w.entry, w.position, {rows + w.host_row * V, V});
    return;
  }
  auto M = static_cast<std::int64_t>(f.wanted.size());
  for (std::int64_t first = 0; first < M; first += slice_rows_) {
    std::int64_t n = std::min<std::int64_t>(slice_rows_, M - first);
    Tensor logits = logits_.rows(n);
    model_.head(b_, logits, hidden_.rows(first, n));
    auto* rows = static_cast<const float*>(
        b_.read(logits.data, n * static_cast<std::int64_t>(V) * 4, staging_.data()));
    for (std::int64_t i = 0; i < n; ++i)
      use(f.wanted[first + i].entry, f.wanted[first + i].position, {rows + i * V, V});
  }
  pool_rows(f, pool);
}

void Runner::pool_rows(const Flight& f, const UseRow& pool) {
  auto E = static_cast<std::size_t>(model_.info().dim);
  auto M = static_cast<std::int64_t>(f.wanted.size()),
       n = static_cast<std::int64_t>(f.pooled.size());
  auto most = static_cast<std::int64_t>(staging_.size() / E);
  for (std::int64_t first = 0; first < n; first += most) {
    std::int64_t some = std::min(most, n - first);
    auto* rows = static_cast<const float*>(b_.read(hidden_.rows(M + first, some).data,
                                                   some * static_cast<std::int64_t>(E) * 4,
                                                   staging_.data()));
    for (std::int64_t i = 0; i < some; ++i)
      pool(f.pooled[first + i].entry, f.pooled[first + i].position, {rows + i * E, E});
  }
}

void Runner::count(Batch& batch, StepRecord& record) const {
  const WeightLoader::Totals& t = model_.totals();
  const std::vector<Wanted>& wanted = current_->wanted;
  record.head_rows = static_cast<int>(wanted.size());
  record.weight_bytes = t.matmul_bytes + (wanted.empty() ? 0 : t.head_bytes);
  record.flops = 0, record.kv_read_bytes = record.kv_write_bytes = 0;
  for (const Wanted& w : wanted)
    batch.entries[w.entry].flops += 2.0 * static_cast<double>(t.head_weights);
  for (BatchEntry& entry : batch.entries) {
    entry.flops += 2.0 * static_cast<double>(t.matmul_weights) * entry.count;
    for (const CacheGroup& g : plan_.groups) {
      auto layers = static_cast<double>(g.layers.size());
      // Positions seen by all rows of the entry, and positions read at least once.
      double seen = 0;
      for (int i = 0; i < entry.count; ++i) {
        int length = entry.first + i + 1;
        seen += g.spec.window > 0 ? std::min(length, g.spec.window) : length;
      }
      int end = entry.first + entry.count;
      int span = g.spec.window > 0 ? std::min(end, g.spec.window + entry.count - 1) : end;
      entry.flops += 4.0 * seen * layers * model_.info().heads * g.spec.head_dim;
      std::int64_t bytes = g.page_bytes / plan_.page_size;
      if (entry.count > 0) entry.kv_read_bytes += static_cast<double>(bytes * span);
      entry.kv_write_bytes += static_cast<double>(bytes * entry.count);
    }
    record.flops += entry.flops;
    record.kv_read_bytes += static_cast<std::int64_t>(entry.kv_read_bytes);
    record.kv_write_bytes += static_cast<std::int64_t>(entry.kv_write_bytes);
  }
}

}  // namespace vitrine
