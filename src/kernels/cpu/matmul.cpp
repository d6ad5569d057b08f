// Matrix products: threads take groups of panels of 32 outputs; a panel is read once per kMaxRows
// rows.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/cpu/ahead.h"
#include "kernels/cpu/backend.h"
#include "kernels/cpu/over_rows.h"
#include "quant/format.h"

namespace vitrine::cpu {
namespace {

const PackedWeight& packed(const Weight& w) { return static_cast<const PackedWeight&>(w); }

// The parts of the prepared activations, one after the other in the buffer.
ByteRows byte_rows(void* buffer, std::int64_t M, std::int64_t steps) {
  auto* q = static_cast<std::int8_t*>(buffer);
  auto* scale = reinterpret_cast<float*>(q + M * steps * kStep);
  return {q, scale, reinterpret_cast<std::int32_t*>(scale + M * steps)};
}

// Whether products with both weights can take the same prepared activations.
bool same_form(const PackedWeight& a, const PackedWeight& b, Isa isa) {
  const Arithmetic arithmetic = a.arithmetic(isa);
  if (arithmetic != b.arithmetic(isa)) return false;
  return a.format() == b.format() ||
         (arithmetic == Arithmetic::kAmxIntegers && a.format()->integers == b.format()->integers);
}

AmxRows amx_rows(void* buffer, const PackedWeight& w, int power, std::int64_t M) {
  const bool ready = w.format()->bf16_tiles;
  return {static_cast<std::uint16_t*>(buffer), w.steps(), static_cast<int>(M),
          ready ? 1.0f : std::ldexp(1.0f, kAmxExponent - power), !ready};
}

// What bf16 leaves of a row; nothing of what is not finite.
void left_by_bf16(const float* x, std::int64_t n, float* left) {
  for (std::int64_t i = 0; i < n; ++i) {
    auto bits = std::bit_cast<std::uint32_t>(x[i]);
    std::uint32_t kept = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000;
    left[i] = (kept & 0x7F800000) == 0x7F800000 ? 0 : x[i] - std::bit_cast<float>(kept);
  }
}

// Activations, behind them their sums in one of two forms, and then the steps.
IntegerRows integer_rows(void* buffer, const PackedWeight& w, std::int64_t M) {
  const std::int64_t places = round_rows(M) * ((w.steps() + kSuper - 1) / kSuper);
  auto* q = static_cast<std::int8_t*>(buffer);
  auto* sums = q + places * 2 * kSuper * kStep;
  auto* lows = sums + places * 64;
  auto* step = reinterpret_cast<float*>(lows + places * 64);
  return {q,
          step,
          reinterpret_cast<std::int32_t*>(sums),
          reinterpret_cast<std::uint16_t*>(sums),
          lows,
          w.steps(),
          static_cast<int>(M),
          w.format()->integers};
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
  const MatmulPart part{out, &w, bias};
  multiply_all({&part, 1}, x, false);
}

void CpuBackend::matmul_add_(Tensor out, Tensor, Tensor x, const Weight& w, Tensor bias) {
  const MatmulPart part{out, &w, bias};
  multiply_all({&part, 1}, x, true);
}

void CpuBackend::matmul_group_(std::span<const MatmulPart> parts, Tensor x, const InputNorm& norm) {
  if (norm.w.defined()) rms_norm(norm.scratch, x, norm.w, norm.eps), x = norm.scratch;
  for (std::size_t i = 0; i < parts.size();) {
    std::size_t end = i + 1;
    while (end < parts.size() && same_form(packed(*parts[i].w), packed(*parts[end].w), isa_)) ++end;
    multiply_all(parts.subspan(i, end - i), x, false);
    i = end;
  }
}

// How many neighbouring panels of a matrix a thread takes at a time: at least four items a thread.
std::int64_t CpuBackend::panels_at_once(const PackedWeight& w, int most) const {
  return std::clamp<std::int64_t>(w.panels() / (4 * threads()), 1, most);
}

// Calls f(where it goes, its first output, outputs, where they are in acc) for what multiply() left
// there of M rows in `parts`, that is for the rows of `out`. Lines of later rows are fetched
// meanwhile.
template <typename F>
void CpuBackend::over_results(const PackedWeight& w, std::int64_t first, int count, std::int64_t M,
                              int parts, float* out, F&& f) {
  constexpr std::int64_t kRowsAhead = 4;
  const std::int64_t rows = round_rows(parts * M);
  for (std::int64_t m = 0; m < M; ++m)
    for (int p = 0; p < count; ++p) {
      const std::int64_t begin = (first + p) * kPanel;
      const std::int64_t n = std::min<std::int64_t>(kPanel, w.rows() - begin);
      float* to = out + m * w.rows() + begin;
      if (m + kRowsAhead < M)
        Near{reinterpret_cast<const std::byte*>(to + kRowsAhead * w.rows())}.fetch(kPanel * 4 / 64);
      f(to, begin, n, (p * rows + m) * kPanel);
    }
}

// Products that take the same prepared activations, as one job of the pool.
void CpuBackend::multiply_all(std::span<const MatmulPart> parts, Tensor x, bool add) {
  const Shared shared = shared_of(parts, x.dim(0));
  auto items_of = [&](const PackedWeight& w) {
    const std::int64_t group = panels_at_once(w, shared.panels);
    return (w.panels() + group - 1) / group;
  };
  std::int64_t items = 0;
  for (const MatmulPart& part : parts) items += items_of(packed(*part.w));
  for (std::int64_t t = 0; t < x.dim(0); t += shared.rows) {
    const std::int64_t M = std::min<std::int64_t>(shared.rows, x.dim(0) - t);
    const int all = shared.parts * static_cast<int>(M);
    const float* rows = x.f32() + t * x.dim(1);
    prepare(rows, M, packed(*parts[0].w), shared);
    pool_.run(items, [&](std::int64_t item, int thread) {
      const MatmulPart* part = parts.data();
      for (; item >= items_of(packed(*part->w)); ++part) item -= items_of(packed(*part->w));
      const PackedWeight& w = packed(*part->w);
      const std::int64_t group = panels_at_once(w, shared.panels), first = item * group;
      const int count = static_cast<int>(std::min(group, w.panels() - first));
      float* acc = workers_[thread].acc;
      multiply(workers_[thread], w, shared.power, first, count, rows, all, acc);
      const float* bias = part->bias.defined() ? part->bias.f32() : nullptr;
      over_results(w, first, count, M, shared.parts, part->out.f32() + t * w.rows(),
                   [&](float* to, std::int64_t begin, std::int64_t n, std::int64_t at) {
                     float* from = acc + at;
                     if (shared.parts == 2) k_.add(from, from, from + M * kPanel, n);
                     if (bias != nullptr) k_.add(from, from, bias + begin, n);
                     if (add)
                       k_.add(to, to, from, n);
                     else
                       std::memcpy(to, from, static_cast<std::size_t>(n) * 4);
                   });
    });
  }
}

// Gate and up of the same outputs at once: neither is ever written to memory.
void CpuBackend::matmul_glu_(Tensor out, Tensor scratch, Tensor x, const InputNorm& norm,
                             const Weight& gate, Tensor gate_bias, const Weight& up, Tensor up_bias,
                             Activation activation) {
  const PackedWeight &g = packed(gate), &u = packed(up);
  if (!same_form(g, u, isa_))
    return Backend::matmul_glu_(out, scratch, x, norm, gate, gate_bias, up, up_bias, activation);
  if (norm.w.defined()) rms_norm(norm.scratch, x, norm.w, norm.eps), x = norm.scratch;
  const float* biases[] = {gate_bias.defined() ? gate_bias.f32() : nullptr,
                           up_bias.defined() ? up_bias.f32() : nullptr};
  const MatmulPart both[] = {{out, &gate, gate_bias}, {out, &up, up_bias}};
  const Shared shared = shared_of(both, x.dim(0));
  const std::int64_t group = panels_at_once(g, std::max(1, shared.panels / 2));
  for (std::int64_t t = 0; t < x.dim(0); t += shared.rows) {
    const int M = static_cast<int>(std::min<std::int64_t>(shared.rows, x.dim(0) - t));
    const float* rows = x.f32() + t * g.cols();
    prepare(rows, M, g, shared);
    pool_.run((g.panels() + group - 1) / group, [&](std::int64_t item, int thread) {
      Worker& worker = workers_[thread];
      const std::int64_t first = item * group;
      const int count = static_cast<int>(std::min(group, g.panels() - first));
      multiply_both(worker, g, u, shared.power, first, count, rows, M);
      float* ups = worker.acc + count * round_rows(M) * kPanel;
      over_results(g, first, count, M, 1, out.f32() + t * g.rows(),
                   [&](float* to, std::int64_t begin, std::int64_t n, std::int64_t at) {
                     float* sides[] = {worker.acc + at, ups + at};
                     for (int side = 0; side < 2; ++side)
                       if (biases[side] != nullptr)
                         k_.add(sides[side], sides[side], biases[side] + begin, n);
                     k_.glu(to, sides[0], sides[1], n, act_of(activation));
                   });
    });
  }
}

CpuBackend::Shared CpuBackend::shared_of(std::span<const MatmulPart> parts,
                                         std::int64_t rows) const {
  const PackedWeight& w = packed(*parts[0].w);
  const Arithmetic arithmetic = w.arithmetic(isa_);
  const bool tiles = arithmetic == Arithmetic::kAmx || arithmetic == Arithmetic::kAmxIntegers;
  // Few rows read longer streams from memory so; with many, the sums of few panels stay near.
  // (Rows that are decoded when used have no panels in memory.)
  const std::int64_t stream = rows <= 16 ? kStreamBytes : 0;
  const auto most = static_cast<int>(std::clamp<std::int64_t>(
      stream / std::max<std::int64_t>(1, w.panel_bytes()), kMaxPanels, kAmxMaxPanels));
  Shared shared{kMaxRows, tiles ? kAmxMaxPanels : most, 1, kMaxPower};
  const bool rounds = arithmetic == Arithmetic::kAmx || arithmetic == Arithmetic::kBf16;
  if (w.head() && rounds && w.format()->bf16_tiles) shared.parts = 2, shared.rows /= 2;
  for (const MatmulPart& part : parts)
    shared.power = std::min(shared.power, packed(*part.w).power());
  return shared;
}

void CpuBackend::multiply(Worker& worker, const PackedWeight& w, int power, std::int64_t first,
                          int count, const float* x, int M, float* acc) {
  const Arithmetic arithmetic = w.arithmetic(isa_);
  const std::int64_t steps = w.steps(), sums = round_rows(M) * kPanel;
  if (arithmetic == Arithmetic::kRows) {
    for (int p = 0; p < count; ++p) multiply_rows(worker, w, first + p, x, M, acc + p * sums);
    return;
  }
  const int format = w.format()->number;
  const Panels panels{w.panel(first), w.panel_bytes(), count};
  if (arithmetic == Arithmetic::kAmx)
    return amx_matmul({format, panels, power, amx_rows(prepared_.data(), w, power, M), acc});
  if (arithmetic == Arithmetic::kAmxIntegers)
    return amx_matmul_integers({format, panels, integer_rows(prepared_.data(), w, M), acc});
  if (arithmetic == Arithmetic::kBf16)
    return bf16_matmul_panels(
        {panels, static_cast<const std::uint16_t*>(prepared_.data()), steps, M, acc});
  if (arithmetic == Arithmetic::kBytes)
    return k_.matmul_bytes({format, panels, byte_rows(prepared_.data(), M, steps), steps, M, acc});
  for (int p = 0; p < count; ++p)
    k_.matmul_panel(
        {format, panels.at(p), x, w.cols(), w.cols(), M, acc + p * sums, worker.unpacked});
}

void CpuBackend::multiply_both(Worker& worker, const PackedWeight& a, const PackedWeight& b,
                               int power, std::int64_t first, int count, const float* x, int M) {
  const Arithmetic arithmetic = a.arithmetic(isa_);
  const Panels panels{a.panel(first), a.panel_bytes(), 2 * count, b.panel(first)};
  if (arithmetic == Arithmetic::kAmx)
    return amx_matmul(
        {a.format()->number, panels, power, amx_rows(prepared_.data(), a, power, M), worker.acc});
  if (arithmetic == Arithmetic::kAmxIntegers && a.format() == b.format())
    return amx_matmul_integers(
        {a.format()->number, panels, integer_rows(prepared_.data(), a, M), worker.acc});
  multiply(worker, a, power, first, count, x, M, worker.acc);
  multiply(worker, b, power, first, count, x, M, worker.acc + count * round_rows(M) * kPanel);
}

// 32 rows are decoded by whole blocks of the format and laid out as a panel of f32, then the
// arithmetic of f32. Decoding when used costs no memory; measured on Zen 4, one row takes four
// times as long as with panels of f32, 64 rows a third longer.
void CpuBackend::multiply_rows(Worker& worker, const PackedWeight& w, std::int64_t p,
                               const float* x, int M, float* acc) {
  const Format& format = *find_format(w.dtype());
  const int block = format.info.block;
  const std::int64_t K = w.cols(), first = p * kPanel,
                     rows = std::min<std::int64_t>(kPanel, w.rows() - first);
  const std::int64_t span = std::max(block, kBlockK / block * block);
  float row[std::max(kBlockK, kMaxBlock)];
  for (std::int64_t k = 0; k < K; k += span) {
    const std::int64_t kb = std::min(span, K - k);
    for (std::int64_t n = 0; n < rows; ++n) {
      format.decode(w.source().row_data[first + n] + format_bytes(format.info, k), kb / block, row);
      for (std::int64_t i = 0; i < kb; ++i) worker.unpacked[i * kPanel + n] = row[i];
    }
    k_.matmul_block(worker.unpacked, x + k, K, M, static_cast<int>(kb), acc, k == 0);
  }
}

void CpuBackend::prepare(const float* x, std::int64_t M, const PackedWeight& w,
                         const Shared& shared) {
  std::int64_t K = w.cols(), steps = w.steps();
  Arithmetic arithmetic = w.arithmetic(isa_);
  if (arithmetic == Arithmetic::kFp32 || arithmetic == Arithmetic::kRows) return;
  over_rows(M, K, [&](std::int64_t begin, std::int64_t end, int worker) {
    float* left = static_cast<float*>(rests_.data()) + worker * prepared_steps_ * kStep;
    for (std::int64_t m = begin; m < end; ++m) {
      if (shared.parts == 2) left_by_bf16(x + m * K, K, left);
      if (arithmetic == Arithmetic::kBytes) {
        k_.quantize_bytes(w.format()->quad_order, x + m * K, steps, m, static_cast<int>(M),
                          byte_rows(prepared_.data(), M, steps));
      } else if (arithmetic == Arithmetic::kAmx) {
        const AmxRows rows = amx_rows(prepared_.data(), w, shared.power, shared.parts * M);
        amx_convert(rows, x + m * K, K, m);
        if (shared.parts == 2) amx_convert(rows, left, K, M + m);
      } else if (arithmetic == Arithmetic::kAmxIntegers) {
        amx_prepare_integers(integer_rows(prepared_.data(), w, M), x + m * K, m);
      } else {
        auto* rows = static_cast<std::uint16_t*>(prepared_.data());
        bf16_convert(rows, x + m * K, K, steps, m);
        if (shared.parts == 2) bf16_convert(rows, left, K, steps, M + m);
      }
    }
  });
}

}  // namespace vitrine::cpu
