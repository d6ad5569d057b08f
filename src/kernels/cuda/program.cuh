// What a program is made of, on both sides: instructions, and a block's shared memory.
#pragma once

#include "kernels/cuda/kv_head.cuh"
#include "kernels/cuda/matmul_few.cuh"
#include "kernels/cuda/program.h"

namespace vitrine::cuda {

// Warps that compute; one more fills their rings (and three are there because registers are handed
// over by four warps at a time).
inline constexpr int kProgramWarps = 16, kProgramThreads = 32 * kProgramWarps, kFillThreads = 128;
inline constexpr int kRingBarriers = 8;  // units of a warp that may be on their way

// Heads of one token a sequence: rotated, stored and attended.
struct AttentionTask {
  RopeStore rope;
  KvCache cache;
  const std::int32_t *positions, *slots, *block_table;
  float* out;      // (S,H,D)
  float* partial;  // results of parts of the positions
  unsigned* tickets;
  int S, B, H, G;  // G: query heads of a KV head
  int window;
  float scale, softcap;
};

struct Instruction {
  int dtype;   // of the weights; -1: attention
  int groups;  // of warps, each with a tile
  union {
    Job job;
    AttentionTask attention;
  };
};

// Shared memory: the warps' barriers, the k-quants' scales, what an op works with, the warps'
// rings.
struct ProgramShape {
  const Instruction* code;
  int count, tokens;  // tokens: 1, 2, 4 or 8
  int work, ring;     // offset of the working memory and of the rings
  int ring_bytes;     // of a warp
  unsigned* barrier;  // two counters, zero between kernels
};

// Offsets of the warps' counters of bytes that were read, and of the scales.
inline constexpr int kProgramFreed = kProgramWarps * kRingBarriers * 8,
                     kProgramScratch = kProgramFreed + kProgramWarps * 4;

// An op's working memory, in the order of its offsets.
template <typename F>
struct ProductMemory {
  int sums, reduce, total;
  __host__ __device__ ProductMemory(const Job& job, int tokens) {
    using Few = FewMemory<F, 1>;
    int cols = job.units * F::kCols;
    sums = tokens * Few::token_bytes(cols);
    reduce = sums + (F::kMin ? (tokens * Few::token_sums(cols) + 3) / 4 * 16 : 0);
    total = reduce + 2 * kProgramWarps * (job.glu ? 2 : 1) * 16 * tokens * 4;
  }
};

inline constexpr int kMostHeads = 8;  // query heads of a KV head, and rows of a tile
// A warp's or a part's result: [G][D] values, then [G] {top, sum}. Floats.
inline __host__ __device__ int result_floats(int D, int G) { return G * (D + 2); }
// The warps' results, then the token's heads: G of q, k, v.
inline int attention_bytes(int D, int G) {
  return (kProgramWarps * result_floats(D, G) + (G + 2) * D) * 4;
}

}  // namespace vitrine::cuda
