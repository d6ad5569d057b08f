// Packing: rows, as in the file or decoded where the format has no file here, are copied into a
// staging buffer, some tiles at a time, and a kernel gathers each 32-bit word of the layout
// (weight.h) from them.
#include "kernels/cuda/weight.h"

#include <algorithm>
#include <vector>

#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/unit.cuh"
#include "quant/format.h"

namespace vitrine::cuda {
namespace {

constexpr std::int64_t kStagingBytes = std::int64_t{64} << 20;

const CudaFormat* find_cuda_format(DType dtype) {
  for (const CudaFormat* f : all_cuda_formats())
    if (f->dtype == dtype) return f;
  return nullptr;
}

// In which weights of this type are kept (weight.h).
const CudaFormat& kept_format(DType dtype) {
  const CudaFormat* kept = find_cuda_format(dtype);
  if (kept == nullptr)
    kept = find_cuda_format(find_format(dtype)->info.quantized ? DType::kF16 : DType::kF32);
  VT_CHECK(kept != nullptr, "cuda has neither f16 nor f32");
  return *kept;
}

std::int64_t divide_up(std::int64_t n, std::int64_t by) { return (n + by - 1) / by; }

Result<Buffer> memory_for(const MatrixSource& m, std::int64_t bytes) {
  auto memory = allocate_device(bytes);
  if (!memory.ok())
    return make_error(memory.error().code, "{}: {}", m.name, memory.error().message);
  return memory;
}

// Rows first .. first + n - 1 to the device, neighbours in one copy.
cudaError_t upload(const Context& c, std::byte* to, const MatrixSource& m, std::int64_t first,
                   std::int64_t n, std::int64_t stride) {
  for (std::int64_t i = 0; i < n;) {
    std::int64_t j = i + 1;
    while (j < n && m.row_data[first + j] == m.row_data[first + i] + (j - i) * stride) ++j;
    cudaError_t e = cudaMemcpyAsync(to + i * stride, m.row_data[first + i], (j - i) * stride,
                                    cudaMemcpyHostToDevice, c.stream);
    if (e != cudaSuccess) return e;
    i = j;
  }
  return cudaSuccess;
}

// The same rows, decoded from one format and encoded in the other.
cudaError_t upload_decoded(const Context& c, std::byte* to, const MatrixSource& m,
                           std::int64_t first, std::int64_t n, const Format& from,
                           const Format& into) {
  std::int64_t stride = format_bytes(into.info, m.cols);
  std::vector<float> row(static_cast<std::size_t>(m.cols));
  std::vector<std::byte> rows(static_cast<std::size_t>(n * stride));
  for (std::int64_t i = 0; i < n; ++i) {
    from.decode(m.row_data[first + i], m.cols / from.info.block, row.data());
    into.encode(row.data(), m.cols / into.info.block, rows.data() + i * stride);
  }
  cudaError_t e = cudaMemcpyAsync(to, rows.data(), rows.size(), cudaMemcpyHostToDevice, c.stream);
  return e == cudaSuccess ? cudaStreamSynchronize(c.stream) : e;
}

Error copy_error(const MatrixSource& m, cudaError_t e) {
  return make_error(ErrorCode::kUnavailable, "{}: copy to the device: {}", m.name,
                    cudaGetErrorString(e));
}

Result<std::unique_ptr<Weight>> pack_table(const Context& c, const MatrixSource& m) {
  std::int64_t stride = format_bytes(find_format(m.dtype)->info, m.cols);
  VT_TRY(Buffer memory, memory_for(m, m.rows() * stride));
  cudaError_t e = upload(c, static_cast<std::byte*>(memory.data()), m, 0, m.rows(), stride);
  if (e == cudaSuccess) e = cudaStreamSynchronize(c.stream);
  if (e != cudaSuccess) return copy_error(m, e);
  return std::unique_ptr<Weight>(
      std::make_unique<CudaTable>(m, m.rows() * stride, std::move(memory)));
}

}  // namespace

std::int64_t packed_bytes(DType dtype, std::int64_t rows, std::int64_t cols, WeightUse use) {
  if (use == WeightUse::kTable) return rows * format_bytes(find_format(dtype)->info, cols);
  const CudaFormat& kept = kept_format(dtype);
  return divide_up(rows, kTileRows) * divide_up(cols, kept.unit_cols) * kept.unit_bytes;
}

Result<std::unique_ptr<Weight>> pack_weight(const Context& c, const MatrixSource& m,
                                            WeightUse use) {
  if (use == WeightUse::kTable) return pack_table(c, m);
  const CudaFormat& kept = kept_format(m.dtype);
  const Format &from = *find_format(m.dtype), &into = *find_format(kept.dtype);
  std::int64_t N = m.rows(), bytes = packed_bytes(m.dtype, N, m.cols, use);
  std::int64_t stride = format_bytes(into.info, m.cols), units = divide_up(m.cols, kept.unit_cols);
  if (N == 0 || m.cols == 0 || N > INT32_MAX - 1024 || m.cols > INT32_MAX - 1024)
    return make_error(ErrorCode::kUnsupported, "{}: a matrix of {} x {}", m.name, N, m.cols);
  // A launch has at most 65,535 tiles.
  std::int64_t most = std::min<std::int64_t>(kStagingBytes / stride, 65535 * kTileRows);
  std::int64_t slice = std::max<std::int64_t>(most / kTileRows, 1) * kTileRows;
  VT_TRY(Buffer memory, memory_for(m, bytes));
  VT_TRY(Buffer staging, memory_for(m, std::min(slice, N) * stride));
  auto* raw = static_cast<std::byte*>(staging.data());
  auto* out = static_cast<std::byte*>(memory.data());
  cudaError_t e = cudaSuccess;
  for (std::int64_t first = 0; first < N && e == cudaSuccess; first += slice) {
    std::int64_t n = std::min(slice, N - first);
    e = &from == &into ? upload(c, raw, m, first, n, stride)
                       : upload_decoded(c, raw, m, first, n, from, into);
    if (e != cudaSuccess) break;
    kept.pack(c,
              reinterpret_cast<std::uint32_t*>(out + first / kTileRows * units * kept.unit_bytes),
              {reinterpret_cast<const std::uint8_t*>(raw), stride, n, m.cols});
    e = cudaGetLastError();
    // The staging buffer is filled again.
    if (e == cudaSuccess) e = cudaStreamSynchronize(c.stream);
  }
  if (e != cudaSuccess) return copy_error(m, e);
  return std::unique_ptr<Weight>(std::make_unique<CudaWeight>(m, kept, bytes, std::move(memory)));
}

}  // namespace vitrine::cuda
