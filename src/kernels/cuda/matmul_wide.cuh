// Products by Hopper's wgmma: four warps multiply sixteen rows of weights each, in registers, with
// the same tokens, straight out of shared memory. Only for weights that need no scale in between.
#pragma once

#include "kernels/cuda/unit.cuh"

namespace vitrine::cuda {

// Whether a format's tiles take it, on the device that is compiled for.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
template <typename F>
inline constexpr bool kWide = F::kGroup == 64 && F::kPlanes == 1;
#else
template <typename F>
inline constexpr bool kWide = false;
#endif

// What this thread's copies wrote to shared memory is visible to the products of all after they
// met.
__device__ inline void wide_visible() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// Where 8 NT tokens x 16 columns are in shared memory: [2][NT] pieces of 8 tokens x 8 columns.
template <int NT>
__device__ inline std::uint64_t describe_tokens(unsigned address) {
  constexpr std::uint64_t kBetweenColumns = NT * 128 / 16, kBetweenTokens = 128 / 16;
  return (address & 0x3FFFF) >> 4 | kBetweenColumns << 16 | kBetweenTokens << 32;
}

// The instruction for `n` tokens with the registers {sums}, {weights}, tokens named by `operands`.
#define VT_WIDE(n, operands, ...)                                                                  \
  if constexpr (kHalf)                                                                             \
    asm volatile("wgmma.mma_async.sync.aligned.m64n" n "k16.f32.f16.f16 " operands ", 1, 1, 1, 0;" \
                 : __VA_ARGS__                                                                     \
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(tokens));                           \
  else                                                                                             \
    asm volatile("wgmma.mma_async.sync.aligned.m64n" n "k16.f32.bf16.bf16 " operands               \
                 ", 1, 1, 1, 0;"                                                                   \
                 : __VA_ARGS__                                                                     \
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(tokens))
#define VT_WIDE_SUMS(t) "+f"(d[t][0]), "+f"(d[t][1]), "+f"(d[t][2]), "+f"(d[t][3])

// acc += a * tokens, of 16 columns.
template <bool kHalf, int NT>
__device__ inline void wide_mma(float (&d)[NT][4], const uint4& a, std::uint64_t tokens) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  if constexpr (NT == 1) {
    VT_WIDE("8", "{%0, %1, %2, %3}, {%4, %5, %6, %7}, %8", VT_WIDE_SUMS(0));
  }
  if constexpr (NT == 2) {
    VT_WIDE("16", "{%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9, %10, %11}, %12", VT_WIDE_SUMS(0),
            VT_WIDE_SUMS(1));
  }
  if constexpr (NT == 4) {
    VT_WIDE("32",
            "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, {%16, %17, "
            "%18, %19}, %20",
            VT_WIDE_SUMS(0), VT_WIDE_SUMS(1), VT_WIDE_SUMS(2), VT_WIDE_SUMS(3));
  }
  if constexpr (NT == 8) {
    VT_WIDE("64",
            "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "
            "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, {%32, %33, %34, "
            "%35}, %36",
            VT_WIDE_SUMS(0), VT_WIDE_SUMS(1), VT_WIDE_SUMS(2), VT_WIDE_SUMS(3), VT_WIDE_SUMS(4),
            VT_WIDE_SUMS(5), VT_WIDE_SUMS(6), VT_WIDE_SUMS(7));
  }
#endif
}
#undef VT_WIDE
#undef VT_WIDE_SUMS

// acc[i] += unit i * tokens. `x`: the unit's columns of the tokens in shared memory, [8][NT]
// pieces. Four warps come here together.
template <typename F, int NT>
__device__ inline void multiply_wide(const std::uint32_t* const (&unit)[2], const std::byte* x,
                                     float (&acc)[2][NT][4], int lane) {
  auto at = static_cast<unsigned>(__cvta_generic_to_shared(x));
  typename F::Chunk chunk[2] = {F::load(unit[0], 0, lane), F::load(unit[1], 0, lane)};
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    std::uint64_t tokens = describe_tokens<NT>(at + j * NT * 256);
#pragma unroll
    for (int i = 0; i < 2; ++i) wide_mma<F::kHalf, NT>(acc[i], chunk[i].w[j], tokens);
  }
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#endif
}

}  // namespace vitrine::cuda
