#pragma once

#include <algorithm>

#include "kernels/cpu/backend.h"

namespace vitrine::cpu {

// Below this many elements a wake-up costs more than it saves.
inline constexpr std::int64_t kMinParallelWork = 16384;

template <typename F>
void CpuBackend::over_rows(std::int64_t rows, std::int64_t work_per_row, F&& f) {
  if (rows * work_per_row < kMinParallelWork || pool_.threads() == 1) return f(0, rows);
  std::int64_t pieces = std::min<std::int64_t>(4 * pool_.threads(), rows);
  pool_.run_ranges(rows, (rows + pieces - 1) / pieces, f);
}

}  // namespace vitrine::cpu
