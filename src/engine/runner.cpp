#include "engine/runner.h"

#include <algorithm>

namespace vitrine {
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
      slice_rows_(std::min(backend.head_rows(), step_tokens)) {}

Result<Tensor> Runner::make(DType dtype, Shape shape) {
  VT_TRY(Buffer buffer, b_.allocate(shape.elements() * 4));
  Tensor t{buffer.data(), dtype, shape};
  buffers_.push_back(std::move(buffer));
  return t;
}

Status Runner::allocate() {
  int T = step_tokens_, S = std::min(plan_.sequences, step_tokens_);
  VT_TRY(ids_, make(DType::kI32, {T}));
  VT_TRY(positions_, make(DType::kI32, {T}));
  VT_TRY(row_offsets_, make(DType::kI32, {S + 1}));
  VT_TRY(out_rows_, make(DType::kI32, {T}));
  VT_TRY(hidden_, make(DType::kF32, {T, model_.info().dim}));
  VT_TRY(logits_, make(DType::kF32, {slice_rows_, model_.info().vocab}));
  int B = (plan_.context + plan_.page_size - 1) / plan_.page_size;
  caches_.resize(model_.info().layers);
  for (const CacheGroup& g : plan_.groups) {
    KvIndex index;
    VT_TRY(index.slots, make(DType::kI32, {T}));
    VT_TRY(index.block_table, make(DType::kI32, {S, B}));
    indexes_.push_back(index);
    host_slots_.emplace_back(T);
    host_tables_.emplace_back(static_cast<std::size_t>(S) * B);
    KvShape shape{g.spec.kv_heads, g.spec.head_dim, plan_.page_size, plan_.kv_dtype};
    std::int64_t bytes = b_.kv_page_bytes(shape) * g.pages;
    for (int layer : g.layers) {
      VT_TRY(Buffer buffer, b_.allocate(bytes));
      caches_[layer] = {shape, g.pages, static_cast<std::byte*>(buffer.data())};
      buffers_.push_back(std::move(buffer));
    }
  }
  host_ids_.resize(T);
  host_positions_.resize(T);
  host_offsets_.resize(S + 1);
  host_rows_.resize(T);
  last_tokens_.resize(plan_.sequences);
  wanted_.reserve(T);
  step_indexes_.resize(indexes_.size());
  staging_.resize(static_cast<std::size_t>(slice_rows_) * model_.info().vocab);
  return Ok{};
}

void Runner::fill(const Batch& batch) {
  wanted_.clear();
  int row = 0, n = 0;
  host_offsets_[0] = 0;
  for (std::size_t e = 0; e < batch.entries.size(); ++e) {
    const BatchEntry& entry = batch.entries[e];
    const Sequence& s = *entry.sequence;
    if (entry.count == 0) {  // a fork follows its source: the last row so far
      host_rows_[wanted_.size()] = row - 1;
      wanted_.push_back({static_cast<int>(e), entry.first - 1});
      continue;
    }
    for (int i = 0; i < entry.count; ++i, ++row) {
      int position = entry.first + i;
      bool known = position < static_cast<int>(s.tokens.size());
      host_ids_[row] = known ? s.tokens[position] : last_tokens_[s.slot];
      host_positions_[row] = position;
      for (std::size_t g = 0; g < indexes_.size(); ++g)
        host_slots_[g][row] = s.tables[g].slot(position);
      if (s.wants_logits(position) || (entry.sample && i == entry.count - 1)) {
        host_rows_[wanted_.size()] = row;
        wanted_.push_back({static_cast<int>(e), position});
      }
    }
    host_offsets_[n + 1] = row;
    for (std::size_t g = 0; g < indexes_.size(); ++g) {
      std::int64_t B = indexes_[g].block_table.dim(1);
      const auto& pages = s.tables[g].pages();
      std::copy(pages.begin(), pages.end(),
                host_tables_[g].begin() + static_cast<std::int64_t>(n) * B);
    }
    ++n;
  }
  sequences_ = n;
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

void Runner::run(const Batch& batch) {
  fill(batch);
  copy_pages(batch);
  std::int64_t T = batch.tokens, S = sequences_;
  auto M = static_cast<std::int64_t>(wanted_.size());
  auto upload = [&](Tensor to, const std::vector<std::int32_t>& from, std::int64_t n) {
    b_.write(to.data, from.data(), n * 4);
    return to.rows(n);
  };
  ModelInput in;
  in.ids = upload(ids_, host_ids_, T);
  in.positions = upload(positions_, host_positions_, T);
  Tensor offsets = upload(row_offsets_, host_offsets_, S + 1);
  in.out_rows = upload(out_rows_, host_rows_, M);
  for (std::size_t g = 0; g < indexes_.size(); ++g) {
    std::int64_t B = indexes_[g].block_table.dim(1);
    step_indexes_[g].positions = in.positions;
    step_indexes_[g].row_offsets = offsets;
    step_indexes_[g].slots = upload(indexes_[g].slots, host_slots_[g], T);
    b_.write(indexes_[g].block_table.data, host_tables_[g].data(), S * B * 4);
    step_indexes_[g].block_table = indexes_[g].block_table.rows(S);
  }
  in.groups = step_indexes_;
  in.caches = caches_;
  in.group_of = plan_.group_of;
  model_.forward(in, hidden_.rows(M));
}

void Runner::for_each_logits(const Batch&, const UseLogits& use) {
  std::int64_t V = model_.info().vocab, M = static_cast<std::int64_t>(wanted_.size());
  for (std::int64_t first = 0; first < M; first += slice_rows_) {
    std::int64_t n = std::min<std::int64_t>(slice_rows_, M - first);
    Tensor logits = logits_.rows(n);
    model_.head(logits, hidden_.rows(first, n));
    auto* rows = static_cast<const float*>(b_.read(logits.data, n * V * 4, staging_.data()));
    for (std::int64_t i = 0; i < n; ++i)
      use(wanted_[first + i].entry, wanted_[first + i].position,
          {rows + i * V, static_cast<std::size_t>(V)});
  }
}

void Runner::count(Batch& batch, StepRecord& record) const {
  const WeightLoader::Totals& t = model_.totals();
  record.head_rows = wanted_rows();
  record.weight_bytes = t.matmul_bytes + (wanted_rows() > 0 ? t.head_bytes : 0);
  record.flops = 0, record.kv_read_bytes = record.kv_write_bytes = 0;
  for (const Wanted& w : wanted_)
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
