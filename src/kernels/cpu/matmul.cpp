// Matrix products: threads take groups of panels of 32 outputs; a panel is read once per kMaxRows
// rows.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/backend.h"
#include "kernels/cpu/over_rows.h"
#include "quant/format.h"

namespace vitrine::cpu {
namespace {

PanelType panel_type(const PackedWeight& w) {
  switch (w.layout()) {
    case Layout::kQ8:
      return PanelType::kQ8;
    case Layout::kQ4:
      return PanelType::kQ4;
    case Layout::kQ4K:
      return PanelType::kQ4K;
    case Layout::kQ5K:
      return PanelType::kQ5K;
    case Layout::kQ6K:
      return PanelType::kQ6K;
    case Layout::k16:
      return w.dtype() == DType::kF16 ? PanelType::kF16 : PanelType::kBF16;
    case Layout::kF32:
    case Layout::kRows:
      break;
  }
  return PanelType::kF32;
}

// The parts of the prepared activations, one after the other in the buffer.
ByteRows byte_rows(void* buffer, std::int64_t M, std::int64_t steps) {
  auto* q = static_cast<std::int8_t*>(buffer);
  auto* scale = reinterpret_cast<float*>(q + M * steps * kStep);
  return {q, scale, reinterpret_cast<std::int32_t*>(scale + M * steps)};
}

// bf16 activations of blocks and behind them the sums.
BlockRows block_rows(void* buffer, std::int64_t M, std::int64_t steps) {
  auto* x = static_cast<std::uint16_t*>(buffer);
  return {x, static_cast<float*>(buffer), reinterpret_cast<float*>(x + (M + 16) * steps * kStep)};
}

}  // namespace

void CpuBackend::embed_(Tensor out, const Weight& table, Tensor ids, float scale) {
  const MatrixSource& m = static_cast<const TableWeight&>(table).source();
  const Format* format = find_format(m.dtype);
  std::int64_t T = out.dim(0), E = out.dim(1);
  pool_.run_ranges(T, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      float* to = out.f32() + t * E;
      format->decode(m.row_data[ids.i32()[t]], E / format->info.block, to);
      for (std::int64_t e = 0; e < E; ++e) to[e] *= scale;
    }
  });
}

void CpuBackend::matmul_(Tensor out, Tensor x, const Weight& w, Tensor bias) {
  const auto& packed = static_cast<const PackedWeight&>(w);
  std::int64_t M = x.dim(0), N = w.rows(), K = w.cols();
  for (std::int64_t m = 0; m < M; m += kMaxRows)
    matmul_rows(out.f32() + m * N, x.f32() + m * K, std::min<std::int64_t>(kMaxRows, M - m), packed,
                bias.defined() ? bias.f32() : nullptr);
}

// Calls f(worker, first panel, panels) for groups of panels, on all threads: several panels an
// item, but at least four items a thread.
template <typename F>
void CpuBackend::over_panels(const PackedWeight& w, F&& f) {
  const std::int64_t group = std::clamp<std::int64_t>(w.panels() / (4 * threads()), 1, kMaxPanels);
  pool_.run((w.panels() + group - 1) / group, [&](std::int64_t item, int thread) {
    const std::int64_t first = item * group;
    f(workers_[thread], first, static_cast<int>(std::min(group, w.panels() - first)));
  });
}

// Calls f(m, first output, outputs, where they are in acc) for what multiply() left there.
template <typename F>
void CpuBackend::over_results(const PackedWeight& w, std::int64_t first, int count, std::int64_t M,
                              F&& f) {
  for (int p = 0; p < count; ++p) {
    const std::int64_t begin = (first + p) * kPanel;
    const std::int64_t n = std::min<std::int64_t>(kPanel, w.rows() - begin);
    for (std::int64_t m = 0; m < M; ++m) f(m, begin, n, (p * round_rows(M) + m) * kPanel);
  }
}

void CpuBackend::matmul_rows(float* out, const float* x, std::int64_t M, const PackedWeight& w,
                             const float* bias) {
  prepare(x, M, w);
  over_panels(w, [&](Worker& worker, std::int64_t first, int count) {
    multiply(worker, w, first, count, x, static_cast<int>(M), worker.acc);
    over_results(w, first, count, M,
                 [&](std::int64_t m, std::int64_t begin, std::int64_t n, std::int64_t at) {
                   const float* from = worker.acc + at;
                   float* to = out + m * w.rows() + begin;
                   if (bias != nullptr)
                     for (std::int64_t i = 0; i < n; ++i) to[i] = from[i] + bias[begin + i];
                   else
                     std::memcpy(to, from, static_cast<std::size_t>(n) * 4);
                 });
  });
}

// Gate and up of the same outputs one after the other: neither is ever written to memory.
void CpuBackend::matmul_glu_(Tensor out, Tensor scratch, Tensor x, const InputNorm& norm,
                             const Weight& gate, Tensor gate_bias, const Weight& up, Tensor up_bias,
                             Activation activation) {
  if (gate.dtype() != up.dtype())
    return Backend::matmul_glu_(out, scratch, x, norm, gate, gate_bias, up, up_bias, activation);
  if (norm.w.defined()) rms_norm(norm.scratch, x, norm.w, norm.eps), x = norm.scratch;
  const auto& g = static_cast<const PackedWeight&>(gate);
  const auto& u = static_cast<const PackedWeight&>(up);
  const float* biases[] = {gate_bias.defined() ? gate_bias.f32() : nullptr,
                           up_bias.defined() ? up_bias.f32() : nullptr};
  const std::int64_t N = g.rows(), K = g.cols();
  for (std::int64_t t = 0; t < x.dim(0); t += kMaxRows) {
    const std::int64_t M = std::min<std::int64_t>(kMaxRows, x.dim(0) - t);
    const float* rows = x.f32() + t * K;
    prepare(rows, M, g);
    over_panels(g, [&](Worker& worker, std::int64_t first, int count) {
      multiply(worker, g, first, count, rows, static_cast<int>(M), worker.acc);
      multiply(worker, u, first, count, rows, static_cast<int>(M), worker.acc2);
      over_results(g, first, count, M,
                   [&](std::int64_t m, std::int64_t begin, std::int64_t n, std::int64_t at) {
                     float* both[] = {worker.acc + at, worker.acc2 + at};
                     for (int side = 0; side < 2; ++side)
                       if (biases[side] != nullptr)
                         k_.add(both[side], both[side], biases[side] + begin, n);
                     k_.glu(out.f32() + (t + m) * N + begin, both[0], both[1], n,
                            act_of(activation));
                   });
    });
  }
}

void CpuBackend::multiply(Worker& worker, const PackedWeight& w, std::int64_t first, int count,
                          const float* x, int M, float* acc) {
  const std::int64_t steps = w.steps();
  const Panels panels{w.panel(first), w.panel_bytes(), count};
  const Arithmetic arithmetic = arithmetic_of(w.dtype(), isa_);
  switch (arithmetic) {
    case Arithmetic::kBf16:
    case Arithmetic::kAmx: {
      Bf16Args args{panels, static_cast<const std::uint16_t*>(prepared_.data()), steps, M, acc};
      return arithmetic == Arithmetic::kAmx ? amx_matmul_panels(args) : bf16_matmul_panels(args);
    }
    case Arithmetic::kAmxBlocks:
      return amx_matmul_blocks(
          {panel_type(w), panels, block_rows(prepared_.data(), M, steps), steps, M, acc});
    default:
      break;
  }
  for (int p = 0; p < count; ++p, acc += round_rows(M) * kPanel) {
    if (arithmetic == Arithmetic::kBytes)
      k_.matmul_bytes(
          {panel_type(w), panels.at(p), byte_rows(prepared_.data(), M, steps), steps, M, acc});
    else if (arithmetic == Arithmetic::kFp32)
      k_.matmul_panel(
          {panel_type(w), panels.at(p), x, w.cols(), w.cols(), M, acc, worker.unpacked});
    else
      panel_rows(worker, w, first + p, x, M, acc);
  }
}

// Formats without a layout of their own: decode 32 rows by blocks, then the same fp32 arithmetic.
void CpuBackend::panel_rows(Worker& worker, const PackedWeight& w, std::int64_t p, const float* x,
                            int M, float* acc) {
  const Format* format = find_format(w.dtype());
  const int block = format->info.block;
  std::int64_t K = w.cols(), N = w.rows();
  float row[256];
  VT_CHECK(block <= 256);
  // Whole blocks of the format, decoded in slices that fit the scratch.
  for (std::int64_t k = 0; k < K; k += block)
    for (int first = 0; first < block; first += kBlockK) {
      int kb = std::min(kBlockK, block - first);
      for (std::int64_t n = 0; n < kPanel; ++n) {
        std::int64_t r = std::min(p * kPanel + n, N - 1);
        format->decode(w.source().row_data[r] + k / block * format->info.bytes, 1, row);
        for (int i = 0; i < kb; ++i) worker.unpacked[i * kPanel + n] = row[first + i];
      }
      k_.matmul_block(worker.unpacked, x + k + first, K, M, kb, acc, k == 0 && first == 0);
    }
}

void CpuBackend::prepare(const float* x, std::int64_t M, const PackedWeight& w) {
  std::int64_t K = w.cols(), steps = w.steps();
  Arithmetic arithmetic = arithmetic_of(w.dtype(), isa_);
  if (arithmetic == Arithmetic::kFp32 || arithmetic == Arithmetic::kRows) return;
  over_rows(M, K, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t m = begin; m < end; ++m) {
      if (arithmetic == Arithmetic::kBytes) {
        k_.quantize_bytes(panel_type(w), x + m * K, steps, m, static_cast<int>(M),
                          byte_rows(prepared_.data(), M, steps));
      } else if (arithmetic == Arithmetic::kAmxBlocks) {
        amx_prepare_row(panel_type(w), x + m * K, steps, m, static_cast<int>(M),
                        block_rows(prepared_.data(), M, steps));
      } else {
        bf16_convert(static_cast<std::uint16_t*>(prepared_.data()), x + m * K, K, steps, m);
      }
    }
  });
}

}  // namespace vitrine::cpu
