// What the product kernels share: which outputs a launch has, and how one is finished.
#pragma once

#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/unit.cuh"

namespace vitrine::cuda {

inline constexpr int kMaxSegments = 4;

struct Segment {
  const std::uint32_t* w;
  float* out;
  const float* bias;
  const float* residual;
  int rows;        // N
  int first_tile;  // in the order of the launch
};

struct Job {
  Segment segment[kMaxSegments];
  int segments, tiles;  // tiles of all segments; of one where glu
  bool glu;             // two segments, gate and up, give segment[0].out
  Activation activation;
  int T, K, units;    // units of a row
  const float* x;     // (T,K)
  const float* norm;  // (K) or null
  float eps;
  float* partial;  // sums of a part of K
  unsigned* tickets;
};

// Segment of a tile; the tile becomes its number within the segment.
__device__ inline const Segment& segment_of(const Job& job, int& tile) {
  int s = 0;
  while (s + 1 < job.segments && tile >= job.segment[s + 1].first_tile) ++s;
  tile -= job.segment[s].first_tile;
  return job.segment[s];
}

// What is added to an output: bias and residual; zero where there is no such output.
__device__ inline float output_addend(const Job& job, const Segment& s, int token, int row) {
  if (token >= job.T || row >= s.rows) return 0;
  float sum = s.bias ? __ldg(s.bias + row) : 0;
  return s.residual ? sum + __ldcg(s.residual + std::int64_t{token} * s.rows + row) : sum;
}

__device__ inline void write_output(const Job& job, const Segment& s, int token, int row,
                                    float sum) {
  if (token >= job.T || row >= s.rows) return;
  s.out[std::int64_t{token} * s.rows + row] = sum + output_addend(job, s, token, row);
}

// The power of two that brings a row with this largest magnitude below 1024, and its inverse.
__device__ inline float2 row_scale(float amax) {
  int exponent = amax > 0 && amax < INFINITY ? 9 - ilogbf(amax) : 0;
  exponent = min(max(exponent, -100), 100);
  return {exp2f(static_cast<float>(exponent)), exp2f(static_cast<float>(-exponent))};
}

// Products of one row as one launch, of the formats that models mix for q, k and v
// (matmul_pair.cu). False, with nothing done, for others.
bool launch_pair(Context& c, const Job& a, DType type, const Job& b, DType type2);

}  // namespace vitrine::cuda
