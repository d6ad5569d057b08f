// FlashAttention over the pages: for each page, scores of up to 8 queries, online softmax, weighted
// sum.
//
// Tiles are pages, so their borders are fixed positions and a query's arithmetic does not depend on
// chunks, threads or the other queries of the call: dot products in ascending d, the running
// maximum and sum per page, values in ascending position. Each K and V element is loaded and
// converted once for all queries of the call. K is stored (D,P): one vector is one d of many
// positions. Dao et al., "FlashAttention", 2022; Milakov and Gimelshein, "Online normalizer
// calculation", 2018.
#include <cmath>
#include <cstring>

#include "kernels/cpu/isa/functions.h"
#include "kernels/cpu/isa/simd.h"

namespace vitrine::cpu::VT_ISA {
namespace {

constexpr int W = Vf::kWidth;

template <KvType kType>
struct Element;
template <>
struct Element<KvType::kF32> {
  static constexpr int kBytes = 4;
  static Vf get(const std::byte* p) { return load(reinterpret_cast<const float*>(p)); }
};
template <>
struct Element<KvType::kF16> {
  static constexpr int kBytes = 2;
  static Vf get(const std::byte* p) { return load_f16(p); }
};
template <>
struct Element<KvType::kBF16> {
  static constexpr int kBytes = 2;
  static Vf get(const std::byte* p) { return load_bf16(p); }
};

// scores (Q, P) of positions j0 .. j0+W*kVecs-1 of the page.
template <KvType kType, int Q, int kVecs>
void scores_of(const AttentionArgs& a, const std::byte* k, int j0, float* scores) {
  using E = Element<kType>;
  Vf acc[Q][kVecs];
  for (auto& row : acc)
    for (Vf& v : row) v = zero();
  for (int d = 0; d < a.head_dim; ++d) {
    const std::byte* p = k + (static_cast<std::int64_t>(d) * a.page_size + j0) * E::kBytes;
    Vf key[kVecs];
    for (int v = 0; v < kVecs; ++v) key[v] = E::get(p + v * W * E::kBytes);
    for (int q = 0; q < Q; ++q) {
      Vf x = set1(a.q[q][d]);
      for (int v = 0; v < kVecs; ++v) acc[q][v] = fma(x, key[v], acc[q][v]);
    }
  }
  Vf scale = set1(a.scale);
  for (int q = 0; q < Q; ++q)
    for (int v = 0; v < kVecs; ++v) {
      Vf s = mul(acc[q][v], scale);
      if (a.softcap > 0) s = mul(set1(a.softcap), tanh(div(s, set1(a.softcap))));
      store(scores + q * a.page_size + j0 + v * W, s);
    }
}

// One page for Q queries. `top` and `sum` are the running maximum and sum of each query.
template <KvType kType, int Q>
void page_of(const AttentionArgs& a, int base, const std::byte* page, float* scores, float* out,
             float* top, float* sum) {
  using E = Element<kType>;
  const int P = a.page_size, D = padded_head_dim(a.head_dim);
  for (int j = 0; j < P; j += 16) scores_of<kType, Q, 16 / W>(a, page + a.k_offset, j, scores);

  // Positions that some query of the call sees, and those that all do.
  int low = P, high = 0, all_begin = 0, all_end = P;
  float keep[Q];
  for (int q = 0; q < Q; ++q) {
    float* s = scores + q * P;
    int begin = a.first[q] > base ? a.first[q] - base : 0;
    int end = a.last[q] + 1 - base < P ? a.last[q] + 1 - base : P;
    keep[q] = 1;
    if (begin >= end) {
      std::memset(s, 0, sizeof(float) * P);
      all_end = 0;
      continue;
    }
    for (int j = 0; j < begin; ++j) s[j] = -INFINITY;
    for (int j = end > 0 ? end : 0; j < P; ++j) s[j] = -INFINITY;
    Vf best = load(s);
    for (int j = W; j < P; j += W) best = max(best, load(s + j));
    float now = reduce_max(best);
    if (now < top[q]) now = top[q];
    Vf total = zero(), shift = set1(now);
    for (int j = 0; j < P; j += W) {
      Vf p = exp(sub(load(s + j), shift));
      store(s + j, p);
      total = add(total, p);
    }
    keep[q] = top[q] == -INFINITY ? 0 : std::exp(top[q] - now);
    sum[q] = sum[q] * keep[q] + reduce_add(total);
    top[q] = now;
    if (begin < low) low = begin;
    if (end > high) high = end;
    if (begin > all_begin) all_begin = begin;
    if (end < all_end) all_end = end;
  }
  const std::byte* values = page + a.v_offset;
  for (int d = 0; d < D; d += W) {
    Vf acc[Q];
    for (int q = 0; q < Q; ++q) acc[q] = mul(load(out + q * D + d), set1(keep[q]));
    for (int j = low; j < high; ++j) {
      Vf value = E::get(values + (static_cast<std::int64_t>(j) * D + d) * E::kBytes);
      if (j >= all_begin && j < all_end) {
        for (int q = 0; q < Q; ++q) acc[q] = fma(set1(scores[q * P + j]), value, acc[q]);
      } else {
        // A query that does not see this position must not meet its value: 0 * inf is NaN.
        for (int q = 0; q < Q; ++q)
          if (scores[q * P + j] != 0) acc[q] = fma(set1(scores[q * P + j]), value, acc[q]);
      }
    }
    for (int q = 0; q < Q; ++q) store(out + q * D + d, acc[q]);
  }
}

template <KvType kType, int Q>
void attend(const AttentionArgs& a) {
  const int D = padded_head_dim(a.head_dim);
  float* scores = a.scratch;
  float* out = a.scratch + static_cast<std::int64_t>(kMaxQueries) * a.page_size;
  float top[Q], sum[Q];
  int first = a.first[0], last = a.last[0];
  for (int q = 0; q < Q; ++q) {
    top[q] = -INFINITY, sum[q] = 0;
    if (a.first[q] < first) first = a.first[q];
    if (a.last[q] > last) last = a.last[q];
  }
  std::memset(out, 0, sizeof(float) * Q * D);
  for (int p = first / a.page_size; p <= last / a.page_size; ++p)
    page_of<kType, Q>(a, p * a.page_size, a.pages + a.block_table[p] * a.page_bytes, scores, out,
                      top, sum);
  for (int q = 0; q < Q; ++q) {
    Vf inverse = set1(1 / sum[q]);
    for (int d = 0; d < D; d += W) store(out + q * D + d, mul(load(out + q * D + d), inverse));
    std::memcpy(a.out[q], out + q * D, sizeof(float) * a.head_dim);
  }
}

template <KvType kType>
void attend_all(const AttentionArgs& a) {
  switch (a.queries) {
    case 1:
      return attend<kType, 1>(a);
    case 2:
      return attend<kType, 2>(a);
    case 3:
      return attend<kType, 3>(a);
    case 4:
      return attend<kType, 4>(a);
    case 5:
      return attend<kType, 5>(a);
    case 6:
      return attend<kType, 6>(a);
    case 7:
      return attend<kType, 7>(a);
    default:
      return attend<kType, 8>(a);
  }
}

}  // namespace

void attention(const AttentionArgs& a) {
  switch (a.type) {
    case KvType::kF32:
      return attend_all<KvType::kF32>(a);
    case KvType::kF16:
      return attend_all<KvType::kF16>(a);
    case KvType::kBF16:
      return attend_all<KvType::kBF16>(a);
  }
}

void store_kv(const float* x, std::int64_t n, std::byte* to, std::int64_t stride, KvType type) {
  for (std::int64_t i = 0; i < n; ++i) {
    if (type == KvType::kF32) {
      std::memcpy(to + i * stride * 4, x + i, 4);
    } else if (type == KvType::kF16) {
      // Beyond fp16's range a finite number stays finite: an infinity would spread to other rows.
      float limited = x[i] > 65504 ? 65504 : x[i] < -65504 ? -65504 : x[i];
      unsigned short half = _cvtss_sh(limited, _MM_FROUND_TO_NEAREST_INT);
      std::memcpy(to + i * stride * 2, &half, 2);
    } else {
      std::uint32_t bits;
      std::memcpy(&bits, x + i, 4);
      bool nan = (bits & 0x7FFFFFFF) > 0x7F800000;
      auto half = static_cast<std::uint16_t>(nan ? (bits >> 16) | 0x40
                                                 : (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
      std::memcpy(to + i * stride * 2, &half, 2);
    }
  }
}

}  // namespace vitrine::cpu::VT_ISA
