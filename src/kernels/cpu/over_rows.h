#pragma once

#include <algorithm>
#include <type_traits>

#include "kernels/cpu/backend.h"

namespace vitrine::cpu {

// Below this many elements waking other threads costs more than it saves.
inline constexpr std::int64_t kMinParallelWork = 16384;

template <typename F>
void CpuBackend::over_rows(std::int64_t rows, std::int64_t work_per_row, F&& f) {
  auto call = [&f](std::int64_t begin, std::int64_t end, int worker) {
    if constexpr (std::is_invocable_v<F&, std::int64_t, std::int64_t, int>)
      f(begin, end, worker);
    else
      f(begin, end);
  };
  if (rows * work_per_row < kMinParallelWork || pool_.threads() == 1) return call(0, rows, 0);
  const std::int64_t pieces = std::min<std::int64_t>(4 * pool_.threads(), rows),
                     grain = (rows + pieces - 1) / pieces;
  pool_.run((rows + grain - 1) / grain, [&](std::int64_t i, int worker) {
    call(i * grain, std::min(rows, (i + 1) * grain), worker);
  });
}

}  // namespace vitrine::cpu
