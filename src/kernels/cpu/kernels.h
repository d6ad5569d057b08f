// The inner kernels, on raw pointers. The files under isa/ implement this table once per
// instruction set; the backend picks a table at start. Nothing here allocates, throws or knows of
// threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/panels.h"

namespace vitrine::cpu {

// Rows that one matmul call handles; larger M is cut by the caller.
inline constexpr int kMaxRows = 512;
// k of one unpacked block: 128 * 32 floats fit the first-level cache beside the activations.
inline constexpr int kBlockK = 128;

// acc (M,32) = x (M,K) times one panel; see panels.h. `unpacked`: scratch of kBlockK * 32 floats.
struct PanelArgs {
  int format;  // PanelFormat::number
  const std::byte* panel;
  const float* x;
  std::int64_t ldx;
  std::int64_t K;
  int M;
  float* acc;
  float* unpacked;
};

// Neighbouring panels of a matrix, or of two matrices, half of them each. With few rows several are
// read at once, as so many streams; with many they share what is near of the activations.
struct Panels {
  const std::byte* first;
  std::int64_t bytes;  // of one
  int count;
  const std::byte* second = nullptr;  // of the other matrix
  const std::byte* at(int p) const {
    const int half = second == nullptr ? count : count / 2;
    return p < half ? first + p * bytes : second + (p - half) * bytes;
  }
};
// Rows that the results of one panel take: tiles write whole sixteens.
inline constexpr std::int64_t round_rows(std::int64_t M) { return (M + 15) / 16 * 16; }

// int8 activations with a scale per 32 k, for quantised panels. [steps][M][...]: what one step
// needs is contiguous.
struct ByteRows {
  std::int8_t* q;      // (steps, M, 32): activation = scale * q, in the order of the panel's quads
  float* scale;        // (steps, M)
  std::int32_t* sums;  // (steps, M, 2): of q, of each half of 16
};
struct BytesArgs {
  int format;
  Panels panels;
  ByteRows rows;
  std::int64_t steps;
  int M;
  float* acc;  // (panel, rows, 32)
};

enum class KvType : std::uint8_t { kF32, kF16, kBF16 };
enum class Act : std::uint8_t { kSilu, kGelu, kGeluTanh, kRelu };

// Query heads that share one pass over the pages.
inline constexpr int kMaxQueries = 8;

// V rows are padded to whole vectors; the padding is zero and stays so.
inline constexpr int padded_head_dim(int head_dim) { return (head_dim + 15) / 16 * 16; }

// Limits of attention; scratch is sized for them.
inline constexpr int kMaxPageSize = 1024, kMaxHeadDim = 1024;

// Attention of up to kMaxQueries (row, head) pairs of one sequence and one kv head.
// A page holds, for each kv head, K transposed (D,P) and, behind all heads' K, V (P, padded D).
struct AttentionArgs {
  int queries;
  const float* q[kMaxQueries];  // (D)
  float* out[kMaxQueries];      // (D)
  int first[kMaxQueries];       // positions seen: first .. last
  int last[kMaxQueries];
  const std::int32_t* block_table;
  const std::byte* pages;
  std::int64_t page_bytes, k_offset, v_offset;  // of this kv head within a page
  int page_size, head_dim;
  KvType type;
  float scale, softcap;
  float* scratch;  // attention_scratch() floats
};

// Positions of a tile of attention: as many whole pages as fit 128, at least one.
inline constexpr int attention_tile(int page_size) {
  return page_size < 128 ? 128 / page_size * page_size : page_size;
}
inline constexpr std::int64_t attention_scratch(int page_size, int head_dim) {
  return static_cast<std::int64_t>(kMaxQueries) *
         (attention_tile(page_size) + padded_head_dim(head_dim));
}

struct KernelTable {
  void (*matmul_panel)(const PanelArgs& args);
  // acc (M,32) += x (M,kb) times w (kb,32) f32, or = when `first`.
  void (*matmul_block)(const float* w, const float* x, std::int64_t ldx, int M, int kb, float* acc,
                       bool first);
  void (*matmul_bytes)(const BytesArgs& args);
  // One row of steps * 32 floats to row m of M. `quad_order`: PanelFormat's.
  void (*quantize_bytes)(bool quad_order, const float* x, std::int64_t steps, std::int64_t m, int M,
                         const ByteRows& out);
  void (*rms_norm)(float* out, const float* x, const float* w, std::int64_t n, float eps);
  void (*layer_norm)(float* out, const float* x, const float* w, const float* b, std::int64_t n,
                     float eps);
  void (*rope)(float* head, const float* table, std::int64_t half);
  void (*add)(float* out, const float* a, const float* b, std::int64_t n);
  void (*activate)(float* out, const float* x, std::int64_t n, Act act);
  void (*glu)(float* out, const float* gate, const float* up, std::int64_t n, Act act);
  void (*softcap)(float* x, std::int64_t n, float cap);
  void (*attention)(const AttentionArgs& args);
  // n floats to elements that lie `stride` elements apart.
  void (*store)(const float* x, std::int64_t n, std::byte* to, std::int64_t stride, KvType type);
  // Peaks: operations of fused multiply-adds, and of products of bytes, done in `rounds`; n floats
  // read once.
  double (*fma_flops)(std::int64_t rounds, float* sink);
  double (*byte_ops)(std::int64_t rounds, float* sink);
  void (*read_all)(const float* data, std::int64_t n, float* sink);
};

namespace avx2 {
extern const KernelTable kTable;
}
namespace avx512 {
extern const KernelTable kTable;
}
namespace vnni {
extern const KernelTable kTable;
}

// Panels that a thread takes at a time: so many, or with few rows as many as have so many bytes.
inline constexpr int kMaxPanels = 4;
inline constexpr std::int64_t kStreamBytes = 512 * 1024;

// bf16 activations lie as tiles [rows / 16][steps][16 rows][32 k]: what a tile load reads is
// contiguous. (Rows of a power of two would all fall into the same few lines of the cache.)
inline constexpr int kTileWords = 16 * 32;
inline constexpr std::int64_t tile_at(std::int64_t m, std::int64_t s, std::int64_t steps) {
  return (m / 16 * steps + s) * kTileWords + m % 16 * 32;
}

// bf16 activations and weights (panels of tiles) by VDPBF16PS, at every M.
struct Bf16Args {
  Panels panels;
  const std::uint16_t* x;  // tiles
  std::int64_t steps;      // of 32 k
  int M;
  float* acc;  // (panels, round_rows(M), 32)
};
void bf16_matmul_panels(const Bf16Args& args);
double bf16_flops(std::int64_t rounds, float* sink);
// n floats to row m of the tiles, round to nearest even, zero from n to the end of the last step.
void bf16_convert(std::uint16_t* tiles, const float* x, std::int64_t n, std::int64_t steps,
                  std::int64_t m);

// Activations for AMX, in bf16 and in blocks of k: [k / 512][rows / 16][16 steps][16 rows][32 k],
// so that what is near in time is near in memory. Up to 16 rows: tiles of just those rows.
struct AmxRows {
  std::uint16_t* x;    // 64-byte aligned; room for round_rows(M) rows
  std::int64_t steps;  // of 32 k
  int M;
  float factor;  // of every activation
  bool quads;  // k in the order 0 2 1 3 within every four, as tiles that are made of bytes have it
};
inline constexpr int kAmxBlockSteps = 16;
// Words to row m of step s, and from a step to the next of its block.
inline constexpr std::int64_t amx_row_at(const AmxRows& rows, std::int64_t m, std::int64_t s) {
  if (rows.M <= 16) return (s * rows.M + m) * 32;
  const std::int64_t first = s / kAmxBlockSteps * kAmxBlockSteps, left = rows.steps - first;
  const std::int64_t depth = left < kAmxBlockSteps ? left : kAmxBlockSteps;
  return (first * ((rows.M + 15) / 16) + m / 16 * depth + s - first) * kTileWords + m % 16 * 32;
}
inline constexpr std::int64_t amx_step_words(const AmxRows& rows) {
  return (rows.M < 16 ? rows.M : 16) * 32;
}
// n floats to row m, zero from n to the end of the last step.
void amx_convert(const AmxRows& rows, const float* x, std::int64_t n, std::int64_t m);

// bf16 activations against panels that are tiles of bf16 or become such, by AMX.
struct AmxArgs {
  int format;
  Panels panels;
  int power;  // PackedWeight::power()
  AmxRows rows;
  float* acc;  // (panels, round_rows(M), 32)
};
void amx_matmul(const AmxArgs& args);
// Weights that become tiles are there 2^(power - kAmxExponent) of themselves; see amx_unpack.h.
inline constexpr int kAmxExponent = 112;

// Activations in 12 bits, step * (16 high + low), with a step per 256 k.
struct IntegerRows {
  // Up to kIntegerFewRows: (steps, M){32 high, 32 low}. More, as tiles:
  // (k / 256, rows / 16, 4 of 64 k){[16 rows][64 high], [16 rows][64 low]}.
  std::int8_t* q;
  float* step;  // (k / 256, round_rows(M))
  // Few rows: (steps, M, 4): with what a group's sums of level * high and of level * low begin,
  // high of two groups and low of two. Without a bias, the sum of the 32 instead, and that of their
  // low parts in the upper 16 bits.
  std::int32_t* starts;
  // More, without a bias: (k / 256, rows / 16) tiles of the sums of 32: two bf16 that add up, and
  // of their low parts four bytes that add up.
  std::uint16_t* sum_tiles;
  std::int8_t* low_tiles;
  std::int64_t steps;  // of 32 k
  int M;
  IntegerForm form;
};
inline constexpr int kIntegerFewRows = 4;
// Bytes for each row of each 256 k.
inline constexpr int kIntegerRowBytes = 512 + 4 + 64 + 64;
// One row of steps * 32 floats to row m.
void amx_prepare_integers(const IntegerRows& rows, const float* x, std::int64_t m);

// 12-bit activations against panels of four to six bits, by AMX.
struct IntegerArgs {
  int format;
  Panels panels;
  IntegerRows rows;
  float* acc;  // (panels, round_rows(M), 32)
};
void amx_matmul_integers(const IntegerArgs& args);

// Panels that share a block of activations in the second-level cache.
inline constexpr int kAmxMaxPanels = 16;
// Operations done in `rounds` of two independent tile products, of bf16 and of bytes.
double amx_flops(std::int64_t rounds);
double amx_byte_ops(std::int64_t rounds);

}  // namespace vitrine::cpu
