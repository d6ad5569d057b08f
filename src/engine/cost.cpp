#include "engine/cost.h"

#include <algorithm>

namespace vitrine {
namespace {

// Attention of one group's layers: scores and values of every position that a row sees.
void count_attention(BatchEntry& entry, const CacheGroup& g, int heads, int page_size) {
  const int window = g.spec.window, end = entry.first + entry.count;
  double seen = 0;  // positions, by all rows of the entry
  for (int length = entry.first + 1; length <= end; ++length)
    seen += window > 0 ? std::min(length, window) : length;
  const auto layers = static_cast<double>(g.layers.size());
  const KvLayout& kv = g.spec.layout;
  entry.flops += 2.0 * seen * layers * heads * (kv.k.width + kv.v.width);
  // Positions that are read at least once.
  const int span = window > 0 ? std::min(end, window + entry.count - 1) : end;
  const std::int64_t bytes = g.page_bytes / page_size;
  if (entry.count > 0) entry.kv_read_bytes += static_cast<double>(bytes * span);
  entry.kv_write_bytes += static_cast<double>(bytes * entry.count);
}

}  // namespace

void count_cost(Batch& batch, const Work& work, const MemoryPlan& plan, const EngineInfo& info,
                StepRecord& record) {
  const double head = 2.0 * static_cast<double>(info.head_weights);
  const double forward = (work.flops - head * batch.scores_run) / batch.rows_run;
  record.head_rows = static_cast<int>(batch.scores.size());
  record.weight_bytes = work.weight_bytes;
  record.flops = 0, record.kv_read_bytes = record.kv_write_bytes = 0;
  for (const ScoreRow& row : batch.scores) batch.entries[row.entry].flops += head;
  for (BatchEntry& entry : batch.entries) {
    entry.flops += forward * entry.count;
    for (const CacheGroup& g : plan.groups) count_attention(entry, g, info.heads, plan.page_size);
    record.flops += entry.flops;
    record.kv_read_bytes += static_cast<std::int64_t>(entry.kv_read_bytes);
    record.kv_write_bytes += static_cast<std::int64_t>(entry.kv_write_bytes);
  }
}

}  // namespace vitrine
