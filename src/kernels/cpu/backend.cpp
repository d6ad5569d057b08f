#include "kernels/cpu/backend.h"

#include <cstring>
#include <exception>

#include "base/cpu_features.h"
#include "kernels/host_memory.h"

namespace vitrine {
namespace cpu {
namespace {

constexpr std::int64_t kAccBytes = static_cast<std::int64_t>(kAmxMaxPanels) * kMaxRows * kPanel * 4;
static_assert(kAmxMaxPanels >= kMaxPanels);
// As --isa has them, in the order of Isa.
constexpr const char* kIsaNames[] = {"avx2", "avx512", "vnni", "bf16", "amx"};

Isa best_isa() {
  const CpuFeatures& f = cpu_features();
  if (f.amx) return Isa::kAmx;
  if (f.avx512_bf16 && f.avx512_vnni) return Isa::kBf16;
  if (f.avx512_vnni) return Isa::kVnni;
  return f.avx512 ? Isa::kAvx512 : Isa::kAvx2;
}

}  // namespace

CpuBackend::CpuBackend(Isa isa, int threads)
    : isa_(isa),
      k_(isa == Isa::kAvx2     ? avx2::kTable
         : isa == Isa::kAvx512 ? avx512::kTable
                               : vnni::kTable),
      pool_(threads),
      workers_(threads) {
  constexpr std::int64_t kUnpackedBytes = std::int64_t{kUnpackedK} * kPanel * 4;
  for (Worker& w : workers_) {
    constexpr std::int64_t kAttentionBytes = attention_scratch(kMaxPageSize, kMaxHeadDim) * 4;
    auto memory = allocate_host(kAccBytes + kUnpackedBytes + kAttentionBytes);
    VT_CHECK(memory.ok(), "{}", memory.error().message);
    w.memory = std::move(memory).value();
    auto* bytes = static_cast<std::byte*>(w.memory.data());
    w.acc = reinterpret_cast<float*>(bytes);
    w.unpacked = reinterpret_cast<float*>(bytes + kAccBytes);
    w.attention = reinterpret_cast<float*>(bytes + kAccBytes + kUnpackedBytes);
  }
}

std::string CpuBackend::description() const {
  return fmt::format("cpu ({}, {} thread{}, {})", kIsaNames[static_cast<int>(isa_)], threads(),
                     threads() == 1 ? "" : "s", cpu_model_name());
}

Result<Buffer> CpuBackend::allocate(std::int64_t bytes) { return allocate_host(bytes); }

void CpuBackend::write(void* to, const void* from, std::int64_t bytes) {
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

std::int64_t CpuBackend::packed_bytes(DType dtype, std::int64_t rows, std::int64_t cols,
                                      WeightUse use) const {
  return use == WeightUse::kTable ? 0 : PackedWeight::size_of(dtype, rows, cols);
}

Result<std::unique_ptr<Weight>> CpuBackend::pack(const MatrixSource& m, WeightUse use) {
  if (use == WeightUse::kTable) return std::unique_ptr<Weight>(std::make_unique<TableWeight>(m));
  VT_TRY(Buffer buffer, allocate_host(PackedWeight::size_of(m.dtype, m.rows(), m.cols)));
  auto packed = std::make_unique<PackedWeight>(m, std::move(buffer), use);
  if (packed->format() != nullptr)
    pool_.run(packed->panels(), [&](std::int64_t p, int) { packed->pack_panel(m, p); });
  if (packed->steps() > prepared_steps_) {
    // The largest form of an activation: kIntegerRowBytes for 256.
    static_assert(kIntegerRowBytes >= kSuper * kStep * 2 &&
                  kIntegerRowBytes >= kSuper * (kStep + 12));
    const std::int64_t blocks = (packed->steps() + kSuper - 1) / kSuper;
    VT_TRY(prepared_, allocate_host((kMaxRows + 16) * blocks * kIntegerRowBytes));
    VT_TRY(rests_, allocate_host(threads() * packed->steps() * kStep * 4));
    prepared_steps_ = packed->steps();
  }
  return std::unique_ptr<Weight>(std::move(packed));
}

}  // namespace cpu

namespace {

Result<std::unique_ptr<Backend>> create_cpu(const BackendOptions& options) {
  if (!cpu_features().avx2)
    return make_error(ErrorCode::kUnavailable,
                      "the cpu backend needs AVX2, FMA and F16C, which this CPU does not have");
  VT_RETURN_IF_ERROR(check_device("cpu", options, 1));
  cpu::Isa best = cpu::best_isa(), isa = best;
  if (!options.isa.empty()) {
    std::string have;
    bool found = false;
    for (int i = 0; i <= static_cast<int>(best); ++i) {
      have += fmt::format("{}{}", i ? ", " : "", cpu::kIsaNames[i]);
      if (options.isa == cpu::kIsaNames[i]) isa = static_cast<cpu::Isa>(i), found = true;
    }
    if (!found)
      return make_error(ErrorCode::kInvalid, "instruction set '{}': this CPU has {}", options.isa,
                        have);
  }
  int threads = options.threads > 0 ? options.threads : ThreadPool::available_cpus();
  try {
    return std::unique_ptr<Backend>(std::make_unique<cpu::CpuBackend>(isa, threads));
  } catch (const std::exception& e) {
    // Not kUnavailable, for which `auto` would go on to the next, slower backend.
    return make_error(ErrorCode::kBusy, "cannot start {} threads: {}", threads, e.what());
  }
}

}  // namespace

extern const BackendDef kBackend_cpu;
const BackendDef kBackend_cpu{"cpu", 10, create_cpu};

}  // namespace vitrine
