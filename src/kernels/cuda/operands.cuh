// Rows as operands of the tensor instruction, and ops that leave their output so, as bf16, beside
// it: the product that comes next (matmul_tile.cuh) then needs no kernel to prepare them.
#pragma once

#include "kernels/cuda/instructions.cuh"
#include "kernels/cuda/matmul.h"

namespace vitrine::cuda {

// [K/8][tokens/8] pieces of 8 tokens x 8 columns, 128 bytes; columns past K and tokens past T zero.
struct Operands {
  const uint4* x;
  const float* sums;     // [K/32][tokens], for formats with minimums
  const float* factors;  // [tokens], of the outputs; for f16
  int tokens;            // a multiple of the kernel's
};

// Rows that are left so: fewer go another way (matmul_few.cuh).
inline constexpr std::int64_t kFewestLeftRows = 5, kMostLeftRows = 64;

// Tokens that the operands of so many rows have, up to kMostLeftRows.
inline int operand_tokens(std::int64_t T) { return T <= 8 ? 8 : T <= 16 ? 16 : T <= 32 ? 32 : 64; }

// Where the op that runs is to leave its output as operands of bf16, operand_tokens(T) tokens of
// whole units of 64 columns; null where it leaves none. The op must not be one that takes what it
// was given: there is one place.
inline void* leave_operands(Context& c, const float* out, std::int64_t T, std::int64_t K) {
  if (!c.operands || T < kFewestLeftRows || T > kMostLeftRows || K % 64 != 0 ||
      operand_tokens(T) * K * 2 > kOperandBytes)
    return nullptr;
  c.given = {}, c.left = {out, T, K};
  return c.operands;
}

// What the op before left of these rows, or null.
inline const uint4* given_operands(const Context& c, const float* x, std::int64_t T,
                                   std::int64_t K) {
  if (!x || c.given.x != x || c.given.T != T || c.given.K != K) return nullptr;
  return reinterpret_cast<const uint4*>(c.operands);
}

// One number of the operands.
__device__ inline void leave_value(std::uint16_t* to, int tokens, int token, int column, float v) {
  int piece = column / 8 * (tokens / 8) + token / 8;
  to[piece * 64 + token % 8 * 8 + column % 8] = static_cast<std::uint16_t>(pack2<false>(v, 0));
}

// A piece, of which lane l has tokens 2 (l % 4) and that + 1 of column l / 4. All lanes come here,
// not necessarily at once.
__device__ inline void leave_piece(std::uint32_t* to, float v, float next) {
  int lane = static_cast<int>(threadIdx.x) % 32, token = lane / 4;
  std::uint32_t mine = pack2<false>(v, next);
  int from = lane % 4 * 8 + token / 2;  // who has the token, of columns 2 (l % 4) and that + 1
  std::uint32_t x = __shfl_sync(0xffffffff, mine, from),
                y = __shfl_sync(0xffffffff, mine, from + 4);
  to[lane] = __byte_perm(x, y, token % 2 ? 0x7632 : 0x5410);
}

}  // namespace vitrine::cuda
