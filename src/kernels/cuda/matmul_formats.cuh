// What a warp does with one unit (weight.h) of a weight: operands of m16n8k16 out of its words, and
// the scales of its groups. Weights are exact: levels as f16 integers with the group's scale
// applied to the f32 sum of the group, f16 and bf16 as they are, f32 as the sum of three bf16.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/cuda/launch.cuh"

namespace vitrine::cuda {

// ---- instructions ----

__device__ inline void copy_async16(void* shared, const void* global) {
  auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16;" ::"r"(to), "l"(global)
               : "memory");
}
__device__ inline void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kPending>
__device__ inline void copy_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// c += a * b in f32; f16 or bf16 operands.
template <bool kHalf>
__device__ inline void mma(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                           std::uint32_t b1) {
  if constexpr (kHalf)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// c += a * b in integers: levels times signed bytes, 32 columns.
__device__ inline void mma_bytes(int (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                 std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Two floats as f16 or bf16, the first in the lower half.
template <bool kHalf>
__device__ inline std::uint32_t pack2(float x, float y) {
  if constexpr (kHalf) {
    __half2 h = __floats2half2_rn(x, y);
    return *reinterpret_cast<std::uint32_t*>(&h);
  } else {
    __nv_bfloat162 h = __floats2bfloat162_rn(x, y);
    return *reinterpret_cast<std::uint32_t*>(&h);
  }
}
template <bool kHalf>
__device__ inline float2 unpack2(std::uint32_t v) {
  if constexpr (kHalf) return __half22float2(*reinterpret_cast<__half2*>(&v));
  return __bfloat1622float2(*reinterpret_cast<__nv_bfloat162*>(&v));
}

__device__ inline std::uint32_t add_half2(std::uint32_t v, std::uint32_t w) {
  __half2 h = __hadd2(*reinterpret_cast<__half2*>(&v), *reinterpret_cast<__half2*>(&w));
  return *reinterpret_cast<std::uint32_t*>(&h);
}

// Bits of v, moved left by `shift` (right when negative), under `mask`.
__device__ inline std::uint32_t field(std::uint32_t v, int shift, std::uint32_t mask) {
  return (shift >= 0 ? v << shift : v >> -shift) & mask;
}

// (v & kMask) | high in one instruction: left to itself, the compiler makes two of two constants.
template <std::uint32_t kMask>
__device__ inline std::uint32_t and_or(std::uint32_t v, std::uint32_t high) {
  std::uint32_t out;
  asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(out) : "r"(v), "n"(kMask), "r"(high));
  return out;
}

// Two halves each: 1024, whose last bit is 1, and 64, whose last bit is 1/16.
inline constexpr std::uint32_t kF16_1024 = 0x64006400, kF16_64 = 0x54005400;

// ---- formats ----
// kHalf: operands are f16, not bf16. kPlanes: operands that add up to the weight. kGroup: columns
// with one scale (64: none). kMin: the group has a minimum, too. A chunk is 64 columns.
// Scale: {scale of row r, of row r + 8, minimum of r, of r + 8}.
//
// For the product with one row (matmul_one.cuh), where kLevels: bytes() gives the levels of the
// h-th 32 columns of a chunk as operand A of m16n8k32, kOffset above the weight's; its columns
// stand in the order 0, 8, 1, 9, 2, 10 ... of every 16. one_scales() gives the lane's share.

// Of rows r and r + 8 and the lane's n groups: those from n (lane % 4) on, or, of groups of 16,
// lane % 4 of every four.
template <int n>
struct OneScales {
  float scale[2][n];
  float min[2][n];
};

struct WeightBF16 {
  static constexpr bool kHalf = false, kMin = false;
  static constexpr int kCols = 64, kWords = 512, kGroup = 64, kPlanes = 1, kScratch = 0;
  static constexpr bool kLevels = false;
  struct Chunk {
    uint4 w[4];
  };
  static __device__ Chunk load(const std::uint32_t* unit, int, int lane) {
    Chunk c;
#pragma unroll
    for (int j = 0; j < 4; ++j) c.w[j] = reinterpret_cast<const uint4*>(unit)[32 * j + lane];
    return c;
  }
  static __device__ void operand(const Chunk& c, int j, std::uint32_t (&a)[1][4]) {
    a[0][0] = c.w[j].x, a[0][1] = c.w[j].y, a[0][2] = c.w[j].z, a[0][3] = c.w[j].w;
  }
  static __device__ void prepare(const std::uint32_t*, float*, int) {}
  static __device__ float4 scale(const std::uint32_t*, const float*, int, int) { return {}; }
};

struct WeightF16 : WeightBF16 {
  static constexpr bool kHalf = true;
};

struct WeightF32 {
  static constexpr bool kHalf = false, kMin = false;
  static constexpr int kCols = 64, kWords = 1024, kGroup = 64, kPlanes = 3, kScratch = 0;
  static constexpr bool kLevels = false;
  struct Chunk {
    float4 w[8];
  };
  static __device__ Chunk load(const std::uint32_t* unit, int, int lane) {
    Chunk c;
#pragma unroll
    for (int j = 0; j < 8; ++j) c.w[j] = reinterpret_cast<const float4*>(unit)[32 * j + lane];
    return c;
  }
  static __device__ void operand(const Chunk& c, int j, std::uint32_t (&a)[3][4]) {
    const float4 &u = c.w[2 * j], &v = c.w[2 * j + 1];
    float2 w[4] = {{u.x, u.y}, {u.z, u.w}, {v.x, v.y}, {v.z, v.w}};
#pragma unroll
    for (int p = 0; p < 3; ++p)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        a[p][i] = pack2<false>(w[i].x, w[i].y);
        float2 taken = unpack2<false>(a[p][i]);
        w[i].x -= taken.x, w[i].y -= taken.y;
      }
  }
  static __device__ void prepare(const std::uint32_t*, float*, int) {}
  static __device__ float4 scale(const std::uint32_t*, const float*, int, int) { return {}; }
};

struct WeightQ8_0 {
  static constexpr bool kHalf = true, kMin = false;
  static constexpr int kCols = 128, kWords = 544, kGroup = 32, kPlanes = 1, kScratch = 0;
  static constexpr bool kLevels = true;
  static constexpr int kOffset = 128;
  struct Chunk {
    uint4 w[2];
  };
  static __device__ Chunk load(const std::uint32_t* unit, int c, int lane) {
    auto* from = reinterpret_cast<const uint4*>(unit) + 64 * c + lane;
    return {from[0], from[32]};
  }
  static __device__ void operand(const Chunk& c, int j, std::uint32_t (&a)[1][4]) {
    const uint4& w = c.w[j / 2];
    std::uint32_t v[2] = {j % 2 ? w.z : w.x, j % 2 ? w.w : w.y};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      std::uint32_t level = __byte_perm(v[i / 2], kF16_1024, i % 2 ? 0x7372 : 0x7170);
      a[0][i] = add_half2(level, 0xE480E480);  // -1152
    }
  }
  static __device__ void bytes(const Chunk& c, int h, std::uint32_t (&a)[4]) {
    const uint4& w = c.w[h];
    a[0] = __byte_perm(w.x, w.y, 0x5140), a[1] = __byte_perm(w.x, w.y, 0x7362);
    a[2] = __byte_perm(w.z, w.w, 0x5140), a[3] = __byte_perm(w.z, w.w, 0x7362);
  }
  static __device__ OneScales<1> one_scales(const std::uint32_t* unit, int lane) {
    float2 d = unpack2<true>(unit[512 + lane]);
    return {{{d.x}, {d.y}}, {}};
  }
  static __device__ void prepare(const std::uint32_t*, float*, int) {}
  static __device__ float4 scale(const std::uint32_t* unit, const float*, int g, int lane) {
    float2 d = unpack2<true>(unit[512 + lane / 4 * 4 + g]);
    return {d.x, d.y, 0, 0};
  }
};

// Nibbles of the j-th 16 columns of a chunk: 1024 + level for row r (a[0] and a[2]), 64 + level for
// row r + 8, where the level stands four bits higher.
__device__ inline void nibble_operand(const uint4& chunk, int j, std::uint32_t (&a)[4]) {
  std::uint32_t v = j == 0 ? chunk.x : j == 1 ? chunk.y : j == 2 ? chunk.z : chunk.w, w = v >> 8;
  a[0] = and_or<0x000F000F>(v, kF16_1024);
  a[1] = and_or<0x00F000F0>(v, kF16_64);
  a[2] = and_or<0x000F000F>(w, kF16_1024);
  a[3] = and_or<0x00F000F0>(w, kF16_64);
}

// Of 32 columns, which two words have.
__device__ inline void nibble_bytes(const uint4& chunk, int h, std::uint32_t (&a)[4]) {
  std::uint32_t v = h ? chunk.z : chunk.x, w = h ? chunk.w : chunk.y;
  a[0] = v & 0x0F0F0F0F, a[1] = v >> 4 & 0x0F0F0F0F;
  a[2] = w & 0x0F0F0F0F, a[3] = w >> 4 & 0x0F0F0F0F;
}

struct WeightQ4_0 {
  static constexpr bool kHalf = true, kMin = false, kLevels = true;
  static constexpr int kCols = 256, kWords = 576, kGroup = 32, kPlanes = 1, kScratch = 0;
  static constexpr int kOffset = 8;
  struct Chunk {
    uint4 w;
  };
  static __device__ Chunk load(const std::uint32_t* unit, int c, int lane) {
    return {reinterpret_cast<const uint4*>(unit)[32 * c + lane]};
  }
  static __device__ void bytes(const Chunk& c, int h, std::uint32_t (&a)[4]) {
    nibble_bytes(c.w, h, a);
  }
  static __device__ void operand(const Chunk& c, int j, std::uint32_t (&a)[1][4]) {
    nibble_operand(c.w, j, a[0]);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      a[0][i] = add_half2(a[0][i], i % 2 ? 0xD480D480 : 0xE408E408);  // -72, -1032
  }
  static __device__ OneScales<2> one_scales(const std::uint32_t* unit, int lane) {
    uint2 d = reinterpret_cast<const uint2*>(unit + 512)[lane];
    float2 x = unpack2<true>(d.x), y = unpack2<true>(d.y);
    return {{{x.x, y.x}, {x.y, y.y}}, {}};
  }
  static __device__ void prepare(const std::uint32_t*, float*, int) {}
  static __device__ float4 scale(const std::uint32_t* unit, const float*, int g, int lane) {
    float2 d = unpack2<true>(unit[512 + lane / 4 * 8 + g]);
    return {d.x, d.y, 0, 0};
  }
};

// The lane's share of the scales and minimums of q4_k and q5_k.
__device__ inline OneScales<2> k_scales(const std::uint32_t* words, int lane) {
  uint2 w = reinterpret_cast<const uint2*>(words)[lane];
  float mine =
      __half2float(__ushort_as_half(static_cast<unsigned short>(w.x >> 24 | (w.y >> 24) << 8)));
  float top[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) top[i] = __shfl_sync(0xffffffff, mine, i, 4);
  // top * level, exactly: the level as the last bits of 2^23, which the sum takes back.
  auto times = [&](int i, std::uint32_t word, int shift) {
    float level = __uint_as_float(and_or<63>(word >> shift, 0x4B000000));
    return fmaf(level, top[i], top[i] * -8388608.0f);
  };
  OneScales<2> s;
#pragma unroll
  for (int g = 0; g < 2; ++g) {
    s.scale[0][g] = times(0, w.x, 12 * g), s.scale[1][g] = times(2, w.y, 12 * g);
    s.min[0][g] = times(1, w.x, 12 * g + 6), s.min[1][g] = times(3, w.y, 12 * g + 6);
  }
  return s;
}

// The scales of q4_k and q5_k: each lane decodes a quarter of its two rows' into `scratch`
// [8 groups][8 rows] {scale, scale, minimum, minimum}. The minimum takes back the 1024 and 64 of
// the levels as well.
__device__ inline void prepare_k_scales(const std::uint32_t* words, float* scratch, int lane) {
  OneScales<2> s = k_scales(words, lane);
  auto* to = reinterpret_cast<float4*>(scratch) + lane / 4;
#pragma unroll
  for (int g = 0; g < 2; ++g)
    to[8 * (2 * (lane % 4) + g)] = {s.scale[0][g], s.scale[1][g],
                                    fmaf(1024, s.scale[0][g], s.min[0][g]),
                                    fmaf(64, s.scale[1][g], s.min[1][g])};
}

struct WeightQ4_K {
  static constexpr bool kHalf = true, kMin = true, kLevels = true;
  static constexpr int kCols = 256, kWords = 576, kGroup = 32, kPlanes = 1, kScratch = 256;
  static constexpr int kOffset = 0;
  struct Chunk {
    uint4 w;
  };
  static __device__ Chunk load(const std::uint32_t* unit, int c, int lane) {
    return {reinterpret_cast<const uint4*>(unit)[32 * c + lane]};
  }
  static __device__ void bytes(const Chunk& c, int h, std::uint32_t (&a)[4]) {
    nibble_bytes(c.w, h, a);
  }
  static __device__ void operand(const Chunk& c, int j, std::uint32_t (&a)[1][4]) {
    nibble_operand(c.w, j, a[0]);
  }
  static __device__ OneScales<2> one_scales(const std::uint32_t* unit, int lane) {
    return k_scales(unit + 512, lane);
  }
  static __device__ void prepare(const std::uint32_t* unit, float* scratch, int lane) {
    prepare_k_scales(unit + 512, scratch, lane);
  }
  static __device__ float4 scale(const std::uint32_t*, const float* scratch, int g, int lane) {
    return reinterpret_cast<const float4*>(scratch)[8 * g + lane / 4];
  }
};

struct WeightQ5_K {
  static constexpr bool kHalf = true, kMin = true, kLevels = true;
  static constexpr int kCols = 256, kWords = 704, kGroup = 32, kPlanes = 1, kScratch = 256;
  static constexpr int kOffset = 0;
  struct Chunk {
    uint4 w;
    std::uint32_t high;
  };
  static __device__ Chunk load(const std::uint32_t* unit, int c, int lane) {
    return {reinterpret_cast<const uint4*>(unit)[32 * c + lane], unit[512 + 4 * lane + c]};
  }
  static __device__ void bytes(const Chunk& c, int h, std::uint32_t (&a)[4]) {
    nibble_bytes(c.w, h, a);
#pragma unroll
    for (int i = 0; i < 4; ++i) a[i] |= field(c.high, 4 - (4 * h + i), 0x10101010);
  }
  static __device__ void operand(const Chunk& c, int j, std::uint32_t (&a)[1][4]) {
    nibble_operand(c.w, j, a[0]);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      a[0][i] |= field(c.high, 4 + i % 2 * 4 - 8 * (i / 2) - (2 * j + i % 2),
                       i % 2 ? 0x01000100 : 0x00100010);
  }
  static __device__ OneScales<2> one_scales(const std::uint32_t* unit, int lane) {
    return k_scales(unit + 640, lane);
  }
  static __device__ void prepare(const std::uint32_t* unit, float* scratch, int lane) {
    prepare_k_scales(unit + 640, scratch, lane);
  }
  static __device__ float4 scale(const std::uint32_t*, const float* scratch, int g, int lane) {
    return reinterpret_cast<const float4*>(scratch)[8 * g + lane / 4];
  }
};

struct WeightQ6_K {
  static constexpr bool kHalf = true, kMin = false, kLevels = true;
  static constexpr int kCols = 256, kWords = 840, kGroup = 16, kPlanes = 1, kScratch = 256;
  static constexpr int kOffset = 32;
  struct Chunk {
    uint4 w;
    uint2 high;
  };
  static __device__ Chunk load(const std::uint32_t* unit, int c, int lane) {
    return {reinterpret_cast<const uint4*>(unit)[32 * c + lane],
            reinterpret_cast<const uint2*>(unit + 512)[c / 2 * 64 + lane * 2 + c % 2]};
  }
  static __device__ void bytes(const Chunk& c, int h, std::uint32_t (&a)[4]) {
    nibble_bytes(c.w, h, a);
    std::uint32_t high = h ? c.high.y : c.high.x;
#pragma unroll
    for (int i = 0; i < 4; ++i) a[i] |= field(high, 4 - 2 * i, 0x30303030);
  }
  static __device__ void operand(const Chunk& c, int j, std::uint32_t (&a)[1][4]) {
    nibble_operand(c.w, j, a[0]);
    std::uint32_t high = j < 2 ? c.high.x : c.high.y;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      a[0][i] |= field(high, 4 + i % 2 * 4 - 8 * (i / 2) - 2 * (2 * (j % 2) + i % 2),
                       i % 2 ? 0x03000300 : 0x00300030);
      a[0][i] = add_half2(a[0][i], i % 2 ? 0xD600D600 : 0xE420E420);  // -96, -1056
    }
  }
  static __device__ OneScales<4> one_scales(const std::uint32_t* unit, int lane) {
    uint2 w = reinterpret_cast<const uint2*>(unit + 768)[lane];
    float2 d = unpack2<true>(unit[832 + lane / 4]);
    OneScales<4> s;
#pragma unroll
    for (int g = 0; g < 4; ++g) {
      s.scale[0][g] = d.x * static_cast<float>(static_cast<signed char>(w.x >> (8 * g)));
      s.scale[1][g] = d.y * static_cast<float>(static_cast<signed char>(w.y >> (8 * g)));
    }
    return s;
  }
  // [16 groups][8 rows] {scale of r, of r + 8}
  static __device__ void prepare(const std::uint32_t* unit, float* scratch, int lane) {
    OneScales<4> s = one_scales(unit, lane);
    auto* to = reinterpret_cast<float2*>(scratch) + lane / 4;
#pragma unroll
    for (int g = 0; g < 4; ++g) to[8 * (4 * g + lane % 4)] = {s.scale[0][g], s.scale[1][g]};
  }
  static __device__ float4 scale(const std::uint32_t*, const float* scratch, int g, int lane) {
    float2 s = reinterpret_cast<const float2*>(scratch)[8 * g + lane / 4];
    return {s.x, s.y, 0, 0};
  }
};

// ---- a unit ----

// acc += scale * sum - minimum * total, of a group.
template <typename F, typename X>
__device__ inline void add_group(float (&acc)[4], const float (&sum)[4], const float4& scale,
                                 const float2& total) {
#pragma unroll
  for (int i = 0; i < 4; i += X::kPaired || X::kOne ? 2 : 1) {
    float unit = i < 2 ? scale.x : scale.y, min = i < 2 ? scale.z : scale.w;
    if constexpr (F::kMin) acc[i] = fmaf(-min, i % 2 ? total.y : total.x, acc[i]);
    acc[i] = fmaf(unit, X::kPaired ? sum[i] + sum[i + 1] : sum[i], acc[i]);
  }
}

// acc[rt][nt] += unit rt (16 rows) * activations nt (8 tokens). X gives operand B of 16 columns,
// x(j, nt), and, where the format has minimums, x.sum(g, nt): the sums of the lane's two tokens
// over group g. X::kPaired: the lane's two columns belong to one token and are added up in
// acc[..][0] and acc[..][2] where there are groups. X::kOne: only the first of the lane's columns
// counts. The units' words must be visible to the whole warp.
template <typename F, int RT, int NT, typename X>
__device__ inline void multiply_unit(const std::uint32_t* const (&unit)[RT], float* scratch,
                                     const X& x, float (&acc)[RT][NT][4], int lane) {
  if constexpr (F::kScratch > 0) {
#pragma unroll
    for (int rt = 0; rt < RT; ++rt) F::prepare(unit[rt], scratch + rt * F::kScratch, lane);
    __syncwarp();
  }
  constexpr int kChunks = F::kCols / 64, kUnroll = NT == 1 ? 2 : 1, kGroups = 64 / F::kGroup;
#pragma unroll kUnroll
  for (int c = 0; c < kChunks; ++c) {
    typename F::Chunk chunk[RT];
#pragma unroll
    for (int rt = 0; rt < RT; ++rt) chunk[rt] = F::load(unit[rt], c, lane);
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      constexpr int kSteps = F::kGroup / 16;
      int group = c * kGroups + g;
      std::uint32_t a[RT][kSteps][F::kPlanes][4];
      float4 scale[RT];
#pragma unroll
      for (int rt = 0; rt < RT; ++rt) {
#pragma unroll
        for (int s = 0; s < kSteps; ++s) F::operand(chunk[rt], g * kSteps + s, a[rt][s]);
        if constexpr (kGroups > 1)
          scale[rt] = F::scale(unit[rt], scratch + rt * F::kScratch, group, lane);
      }
#pragma unroll
      for (int nt = 0; nt < NT; ++nt) {
        float sum[RT][4] = {};
#pragma unroll
        for (int s = 0; s < kSteps; ++s) {
          uint2 b = x(c * 4 + g * kSteps + s, nt);
#pragma unroll
          for (int rt = 0; rt < RT; ++rt)
#pragma unroll
            for (int p = 0; p < F::kPlanes; ++p)
              mma<F::kHalf>(kGroups > 1 ? sum[rt] : acc[rt][nt], a[rt][s][p], b.x, b.y);
        }
        if constexpr (kGroups > 1) {
          float2 total{};
          if constexpr (F::kMin) total = x.sum(group, nt);
#pragma unroll
          for (int rt = 0; rt < RT; ++rt) add_group<F, X>(acc[rt][nt], sum[rt], scale[rt], total);
        }
      }
    }
  }
}

}  // namespace vitrine::cuda
