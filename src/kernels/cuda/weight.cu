// Packing: the file's rows are copied as they are into a staging buffer, some tiles at a time, and
// a kernel gathers each 32-bit word of the layout (weight.h) from them.
#include <algorithm>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/weight.h"
#include "quant/format.h"

namespace vitrine::cuda {
namespace {

// DType has names for plain types only.
constexpr int kF32 = 0, kF16 = 1, kQ4_0 = 2, kQ8_0 = 8, kQ4_K = 12, kQ5_K = 13, kQ6_K = 14,
              kBF16 = 30;
constexpr std::int64_t kStagingBytes = std::int64_t{64} << 20;

// Rows in the staging buffer.
struct Rows {
  const std::uint8_t* data;
  std::int64_t stride, count, cols;
  // Byte `i` of the row, or 0 where there is no such row.
  __device__ std::uint32_t byte(std::int64_t row, std::int64_t i) const {
    return row < count ? data[row * stride + i] : 0;
  }
  __device__ std::uint32_t half(std::int64_t row, std::int64_t i) const {
    return byte(row, i) | byte(row, i + 1) << 8;
  }
};

// Row (within the tile) and column (within 16) of element h of register i of a lane.
__device__ int row_of(int lane, int i) { return lane / 4 + 8 * (i & 1); }
__device__ int col_of(int lane, int i, int h) { return 2 * (lane % 4) + 8 * (i >> 1) + h; }
// Column (within 16) of byte b of the operand of levels (matmul_formats.cuh).
__device__ int byte_col(int lane, int b) { return 2 * (lane % 4) + 8 * (b % 2) + b / 2; }

// Each returns word w of the unit that begins at row `row`, column `col`.
struct Pack16 {
  static __device__ std::uint32_t word(const Rows& m, std::int64_t row, std::int64_t col, int w) {
    int lane = w % 128 / 4, i = w % 4;
    std::uint32_t out = 0;
    for (int h = 0; h < 2; ++h) {
      std::int64_t k = col + 16 * (w / 128) + col_of(lane, i, h);
      if (k < m.cols) out |= m.half(row + row_of(lane, i), 2 * k) << (16 * h);
    }
    return out;
  }
};

struct Pack32 {
  static __device__ std::uint32_t word(const Rows& m, std::int64_t row, std::int64_t col, int w) {
    int lane = w % 128 / 4, e = w / 128 % 2 * 4 + w % 4;
    std::int64_t k = col + 16 * (w / 256) + col_of(lane, e / 2, e % 2);
    if (k >= m.cols) return 0;
    std::int64_t r = row + row_of(lane, e / 2);
    return m.half(r, 4 * k) | m.half(r, 4 * k + 2) << 16;
  }
};

// {d of row, d of row + 8} of the block at column k, at byte `at` of blocks of `bytes` per `block`.
__device__ std::uint32_t pair_of_halves(const Rows& m, std::int64_t row, std::int64_t k, int block,
                                        int bytes, int at) {
  if (k >= m.cols) return 0;
  std::int64_t i = k / block * bytes + at;
  return m.half(row, i) | m.half(row + 8, i) << 16;
}

struct PackQ8_0 {
  static __device__ std::uint32_t word(const Rows& m, std::int64_t row, std::int64_t col, int w) {
    if (w >= 512) return pair_of_halves(m, row + (w - 512) / 4, col + 32 * (w % 4), 32, 34, 0);
    int lane = w % 128 / 4, part = w % 4;
    std::uint32_t out = 0;
    for (int b = 0; b < 4; ++b) {
      int i = 2 * (part % 2) + b / 2;
      std::int64_t k = col + 32 * (w / 128) + 16 * (part / 2) + col_of(lane, i, b % 2);
      std::uint32_t q = k < m.cols ? m.byte(row + row_of(lane, i), k / 32 * 34 + 2 + k % 32) : 0;
      out |= (q ^ 0x80) << (8 * b);
    }
    return out;
  }
};

// A word of nibbles: element h of register i is nibble 4h + i. `level(row, k)` is the weight's.
template <typename Level>
__device__ std::uint32_t nibbles(int w, Level level) {
  int lane = w % 128 / 4, j = w / 128 * 4 + w % 4;
  std::uint32_t out = 0;
  for (int p = 0; p < 8; ++p)
    out |= (level(row_of(lane, p % 4), 16 * j + col_of(lane, p % 4, p / 4)) & 15) << (4 * p);
  return out;
}

struct PackQ4_0 {
  static __device__ std::uint32_t word(const Rows& m, std::int64_t row, std::int64_t col, int w) {
    if (w >= 512) return pair_of_halves(m, row + (w - 512) / 8, col + 32 * (w % 8), 32, 18, 0);
    return nibbles(w, [&](int r, int c) -> std::uint32_t {
      std::int64_t k = col + c;
      if (k >= m.cols) return 0;
      return m.byte(row + r, k / 32 * 18 + 2 + k % 16) >> (k % 32 / 16 * 4);
    });
  }
};

// Lane (r, q) has the scales of rows r and r + 8, groups 2q and 2q+1, a row a word: scale, minimum,
// scale, minimum in six bits each; in the upper bytes the q-th of {d, dmin of r, d, dmin of r + 8}.
__device__ std::uint32_t k_scale_word(const Rows& m, std::int64_t row, std::int64_t block, int w) {
  int lane = w / 2, q = lane % 4, r = lane / 4;
  std::int64_t from = row + r + 8 * (w % 2);
  std::uint8_t packed[12];
  for (int i = 0; i < 12; ++i) packed[i] = static_cast<std::uint8_t>(m.byte(from, block + 4 + i));
  std::uint32_t out = 0;
  for (int g = 0; g < 2; ++g) {
    int j = 2 * q + g;
    std::uint32_t scale = j < 4 ? packed[j] & 63 : (packed[j + 4] & 15) | (packed[j - 4] >> 6) << 4;
    std::uint32_t min = j < 4 ? packed[j + 4] & 63 : packed[j + 4] >> 4 | (packed[j] >> 6) << 4;
    out |= (scale | min << 6) << (12 * g);
  }
  return out | m.byte(row + r + 8 * (q / 2), block + 2 * (q % 2) + w % 2) << 24;
}

struct PackQ4_K {
  static __device__ std::uint32_t word(const Rows& m, std::int64_t row, std::int64_t col, int w) {
    std::int64_t block = col / 256 * 144;
    if (w >= 512) return k_scale_word(m, row, block, w - 512);
    return nibbles(w, [&](int r, int k) -> std::uint32_t {
      return m.byte(row + r, block + 16 + k / 64 * 32 + k % 32) >> (k % 64 / 32 * 4);
    });
  }
};

struct PackQ5_K {
  static __device__ std::uint32_t word(const Rows& m, std::int64_t row, std::int64_t col, int w) {
    std::int64_t block = col / 256 * 176;
    if (w >= 640) return k_scale_word(m, row, block, w - 640);
    if (w >= 512) return fifth_bits(m, row, block, w - 512);
    return nibbles(w, [&](int r, int k) -> std::uint32_t {
      return m.byte(row + r, block + 48 + k / 64 * 32 + k % 32) >> (k % 64 / 32 * 4);
    });
  }
  // Of 64 columns: row r + 8 i of the j-th 16 is bit 2j + i of the bytes.
  static __device__ std::uint32_t fifth_bits(const Rows& m, std::int64_t row, std::int64_t block,
                                             int w) {
    int lane = w / 4;
    std::uint32_t out = 0;
    for (int b = 0; b < 32; ++b) {
      int k = w % 4 * 64 + b % 8 / 2 * 16 + byte_col(lane, b / 8);
      out |= (m.byte(row + row_of(lane, b % 2), block + 16 + k % 32) >> (k / 32) & 1) << b;
    }
    return out;
  }
};

struct PackQ6_K {
  static __device__ std::uint32_t word(const Rows& m, std::int64_t row, std::int64_t col, int w) {
    std::int64_t block = col / 256 * 210;
    if (w >= 832)
      return m.half(row + w - 832, block + 208) | m.half(row + w - 832 + 8, block + 208) << 16;
    if (w >= 768) {
      int lane = (w - 768) / 2;
      std::uint32_t out = 0;
      for (int g = 0; g < 4; ++g)
        out |= m.byte(row + lane / 4 + 8 * (w % 2), block + 192 + 4 * g + lane % 4) << (8 * g);
      return out;
    }
    if (w >= 512) return high_bits(m, row, block, w - 512);
    return nibbles(w, [&](int r, int k) -> std::uint32_t {
      return m.byte(row + r, block + k / 128 * 64 + k % 64) >> (k % 128 / 64 * 4);
    });
  }
  // Of 32 columns: row r + 8 i of the j-th 16 is the field 2j + i of the bytes.
  static __device__ std::uint32_t high_bits(const Rows& m, std::int64_t row, std::int64_t block,
                                            int w) {
    int lane = w % 128 / 4, part = w / 128 * 4 + w % 4;
    std::uint32_t out = 0;
    for (int f = 0; f < 16; ++f) {
      int k = part * 32 + f % 4 / 2 * 16 + byte_col(lane, f / 4);
      std::uint32_t high = m.byte(row + row_of(lane, f % 2), block + 128 + k / 128 * 32 + k % 32);
      out |= (high >> (k % 128 / 32 * 2) & 3) << (2 * f);
    }
    return out;
  }
};

// One block a unit; grid.y are the tiles.
template <typename Pack>
__global__ void pack_kernel(std::uint32_t* out, Rows m, int unit_cols, int unit_words) {
  std::int64_t unit = std::int64_t{blockIdx.y} * gridDim.x + blockIdx.x;
  for (int w = threadIdx.x; w < unit_words; w += blockDim.x)
    out[unit * unit_words + w] = Pack::word(m, std::int64_t{blockIdx.y} * kTileRows,
                                            std::int64_t{blockIdx.x} * unit_cols, w);
}

using PackKernel = void (*)(std::uint32_t*, Rows, int, int);
PackKernel pack_kernel_of(DType dtype) {
  switch (static_cast<int>(dtype)) {
    case kF32:
      return pack_kernel<Pack32>;
    case kF16:
    case kBF16:
      return pack_kernel<Pack16>;
    case kQ8_0:
      return pack_kernel<PackQ8_0>;
    case kQ4_0:
      return pack_kernel<PackQ4_0>;
    case kQ4_K:
      return pack_kernel<PackQ4_K>;
    case kQ5_K:
      return pack_kernel<PackQ5_K>;
    case kQ6_K:
      return pack_kernel<PackQ6_K>;
    default:
      return nullptr;
  }
}

std::int64_t divide_up(std::int64_t n, std::int64_t by) { return (n + by - 1) / by; }

Result<Buffer> device_memory(std::int64_t bytes, const std::string& name) {
  void* data = nullptr;
  if (cudaError_t e = cudaMalloc(&data, bytes); e != cudaSuccess) {
    cudaGetLastError();
    return make_error(ErrorCode::kUnavailable, "{}: {} MiB of device memory: {}", name, bytes >> 20,
                      cudaGetErrorString(e));
  }
  return Buffer(data, bytes, [](void* p) { cudaFree(p); });
}

// Rows first .. first + n - 1 to the staging buffer, neighbours in one copy.
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

}  // namespace

UnitSize unit_size(DType dtype) {
  switch (static_cast<int>(dtype)) {
    case kF32:
      return {64, 4096};
    case kF16:
    case kBF16:
      return {64, 2048};
    case kQ8_0:
      return {128, 2176};
    case kQ4_0:
    case kQ4_K:
      return {256, 2304};
    case kQ5_K:
      return {256, 2816};
    case kQ6_K:
      return {256, 3360};
    default:
      return {};
  }
}

std::int64_t packed_bytes(DType dtype, std::int64_t rows, std::int64_t cols) {
  UnitSize unit = unit_size(dtype);
  if (unit.cols == 0) return 0;
  return divide_up(rows, kTileRows) * divide_up(cols, unit.cols) * unit.bytes;
}

Result<std::unique_ptr<Weight>> pack_weight(const Context& c, const MatrixSource& m) {
  UnitSize unit = unit_size(m.dtype);
  const Format* format = find_format(m.dtype);
  if (unit.cols == 0 || !format)
    return make_error(ErrorCode::kUnsupported, "{}: type {} has no layout on cuda", m.name,
                      static_cast<int>(m.dtype));
  std::int64_t N = m.rows(), bytes = packed_bytes(m.dtype, N, m.cols);
  std::int64_t stride = format_bytes(format->info, m.cols), units = divide_up(m.cols, unit.cols);
  if (N == 0 || m.cols == 0 || N > INT32_MAX - 1024 || m.cols > INT32_MAX - 1024)
    return make_error(ErrorCode::kUnsupported, "{}: a matrix of {} x {}", m.name, N, m.cols);
  // A launch has at most 65,535 tiles.
  std::int64_t most = std::min<std::int64_t>(kStagingBytes / stride, 65535 * kTileRows);
  std::int64_t slice = std::max<std::int64_t>(most / kTileRows, 1) * kTileRows;
  VT_TRY(Buffer memory, device_memory(bytes, m.name));
  VT_TRY(Buffer staging, device_memory(std::min(slice, N) * stride, m.name));
  auto* raw = static_cast<std::byte*>(staging.data());
  auto* out = static_cast<std::byte*>(memory.data());
  cudaError_t e = cudaSuccess;
  for (std::int64_t first = 0; first < N && e == cudaSuccess; first += slice) {
    std::int64_t n = std::min(slice, N - first);
    e = upload(c, raw, m, first, n, stride);
    if (e != cudaSuccess) break;
    dim3 grid(static_cast<unsigned>(units), static_cast<unsigned>(divide_up(n, kTileRows)));
    Rows rows{reinterpret_cast<const std::uint8_t*>(raw), stride, n, m.cols};
    pack_kernel_of(m.dtype)<<<grid, 128, 0, c.stream>>>(
        reinterpret_cast<std::uint32_t*>(out + first / kTileRows * units * unit.bytes), rows,
        unit.cols, unit.bytes / 4);
    e = cudaGetLastError();
    // The staging buffer is filled again.
    if (e == cudaSuccess) e = cudaStreamSynchronize(c.stream);
  }
  if (e != cudaSuccess)
    return make_error(ErrorCode::kUnavailable, "{}: copy to the device: {}", m.name,
                      cudaGetErrorString(e));
  return std::unique_ptr<Weight>(std::make_unique<CudaWeight>(m, bytes, std::move(memory)));
}

}  // namespace vitrine::cuda
