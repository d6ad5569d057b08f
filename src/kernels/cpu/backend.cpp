#include "kernels/cpu/backend.h"

#include <cstring>

#include "base/cpu_features.h"
#include "kernels/host_memory.h"

namespace vitrine {
namespace cpu {
namespace {

constexpr std::int64_t kAccBytes = static_cast<std::int64_t>(kMaxRows) * kPanel * 4;
constexpr std::int64_t kUnpackedBytes = kAmxBlock * kStep16Bytes;
static_assert(kUnpackedBytes >= (kBlockK + kStep) * kPanel * 4);
// Enough for pages of 1024 positions and heads of 1024 dims.
constexpr std::int64_t kAttentionBytes = attention_scratch(1024, 1024) * 4;

}  // namespace

CpuBackend::CpuBackend(const KernelTable& kernels, bool amx, int threads)
    : k_(kernels), amx_(amx), pool_(threads), workers_(threads) {
  for (Worker& w : workers_) {
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
  return fmt::format("cpu ({}{}, {} thread{}, {})", k_.name, amx_ ? " + amx" : "", threads(),
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
  auto packed = std::make_unique<PackedWeight>(m, std::move(buffer));
  if (packed->layout() != Layout::kRows)
    pool_.run(packed->panels(), [&](std::int64_t p, int) { packed->pack_panel(m, p); });
  std::int64_t padded = packed->steps() * kStep;
  if (amx_ && padded > x16_cols_) {
    VT_TRY(x16_, allocate_host(static_cast<std::int64_t>(kMaxRows) * padded * 2));
    x16_cols_ = padded;
  }
  return std::unique_ptr<Weight>(std::move(packed));
}

std::int64_t CpuBackend::kv_page_bytes(const KvShape& s) const {
  std::int64_t element = s.dtype == DType::kF32 ? 4 : 2;
  return static_cast<std::int64_t>(s.kv_heads) * s.page_size *
         (s.head_dim + padded_head_dim(s.head_dim)) * element;
}

}  // namespace cpu

extern const BackendDef kBackend_cpu;
const BackendDef kBackend_cpu{
    "cpu", 10, [](const BackendOptions& options) -> Result<std::unique_ptr<Backend>> {
      const CpuFeatures& f = cpu_features();
      if (!f.avx2)
        return make_error(ErrorCode::kUnavailable,
                          "the cpu backend needs AVX2, FMA and F16C, which this CPU does not have");
      int threads = options.threads > 0 ? options.threads : ThreadPool::available_cpus();
      bool avx512 = f.avx512 && options.isa != "avx2";
      bool amx = f.amx_bf16 && (options.isa.empty() || options.isa == "amx");
      if (!options.isa.empty() && options.isa != (amx ? "amx" : avx512 ? "avx512" : "avx2"))
        return make_error(ErrorCode::kUnavailable,
                          "instruction set '{}' is not one this CPU has (avx2, avx512, amx)",
                          options.isa);
      const cpu::KernelTable& table = avx512 ? cpu::avx512::kTable : cpu::avx2::kTable;
      return std::unique_ptr<Backend>(std::make_unique<cpu::CpuBackend>(table, amx, threads));
    }};

}  // namespace vitrine
