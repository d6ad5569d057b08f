#include "engine/shares.h"

#include <algorithm>

namespace vitrine {

void share_time(StepRecord& r) {
  const double flops_per_byte = r.flops_per_byte;
  const int rows = r.prefill_tokens + r.decode_tokens, all = rows + r.padding_rows;
  const double weights = all > 0 ? static_cast<double>(r.weight_bytes) / all : 0;
  const auto part = [&](const StepEntry& e) {
    return std::max(e.flops,
                    flops_per_byte * (weights * e.tokens + e.kv_read_bytes + e.kv_write_bytes));
  };
  double sum = 0;
  for (const StepEntry& e : r.entries) sum += part(e);
  // Padding rows cost what the others cost on average, without their K and V.
  const double padding =
      r.padding_rows > 0
          ? std::max(rows > 0 ? r.flops / rows : 0, flops_per_byte * weights) * r.padding_rows
          : 0;
  sum += padding;
  // Each ends where the next begins, in whole nanoseconds.
  double until = 0;
  std::int64_t given = 0;
  for (StepEntry& e : r.entries) {
    until += part(e);
    const auto end =
        sum > 0 ? std::min(r.wall_ns,
                           static_cast<std::int64_t>(until / sum * static_cast<double>(r.wall_ns)))
                : 0;
    e.share_ns = std::max<std::int64_t>(0, end - given);
    given += e.share_ns;
  }
  // What rounding leaves goes to whoever is last.
  r.padding_share_ns = padding > 0 || r.entries.empty() ? r.wall_ns - given : 0;
  if (padding <= 0 && !r.entries.empty()) r.entries.back().share_ns += r.wall_ns - given;
}

}  // namespace vitrine
