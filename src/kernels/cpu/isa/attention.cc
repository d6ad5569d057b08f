// FlashAttention over the pages: for each tile of some pages, scores of up to 8 queries, online
// softmax, weighted sum.
//
// Tiles start at fixed positions, so a query's arithmetic does not depend on chunks, threads or the
// other queries of the call: dot products in ascending d, the running maximum and sum per tile,
// values in ascending position. Each K and V element is loaded and converted once for all queries
// of the call. K is stored (D,P): one vector is one d of many positions. Dao et al.,
// "FlashAttention", 2022; Milakov and Gimelshein, "Online normalizer calculation", 2018.
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

// Queries processed together, and accumulators that fit in registers next to their operands: enough
// of them to hide the latency of the multiply-adds.
constexpr int kTogether = W == 16 ? kMaxQueries : 4;
constexpr int kSums = W == 16 ? 16 : 12;
constexpr int fitting(int queries, int most) {
  int vectors = most;
  while (vectors > 1 && queries * vectors > kSums) vectors /= 2;
  return vectors;
}

// f.operator()<first, count>() for each set of queries that are processed together.
template <int Q, int kFirst = 0, typename F>
void in_turn(F&& f) {
  constexpr int kCount = Q - kFirst < kTogether ? Q - kFirst : kTogether;
  f.template operator()<kFirst, kCount>();
  if constexpr (kFirst + kCount < Q) in_turn<Q, kFirst + kCount>(f);
}

// scores (Q, `width`) of positions j0 .. j0+W*kVecs-1 of the page. `next`: the page that is read
// next, prefetched meanwhile.
template <KvType kType, int kFirst, int Q, int kVecs>
void scores_of(const AttentionArgs& a, const std::byte* k, const std::byte* next, int j0, int width,
               float* scores) {
  using E = Element<kType>;
  Vf acc[Q][kVecs];
  for (auto& row : acc)
    for (Vf& v : row) v = zero();
  for (int d = 0; d < a.head_dim; ++d) {
    std::int64_t at = (static_cast<std::int64_t>(d) * a.page_size + j0) * E::kBytes;
    _mm_prefetch(reinterpret_cast<const char*>(next + at), _MM_HINT_T0);
    Vf key[kVecs];
    for (int v = 0; v < kVecs; ++v) key[v] = E::get(k + at + v * W * E::kBytes);
    for (int q = 0; q < Q; ++q) {
      Vf x = set1(a.q[kFirst + q][d]);
      for (int v = 0; v < kVecs; ++v) acc[q][v] = fma(x, key[v], acc[q][v]);
    }
  }
  Vf scale = set1(a.scale);
  for (int q = 0; q < Q; ++q)
    for (int v = 0; v < kVecs; ++v) {
      Vf s = mul(acc[q][v], scale);
      if (a.softcap > 0) s = mul(set1(a.softcap), tanh(div(s, set1(a.softcap))));
      store(scores + (kFirst + q) * width + j0 + v * W, s);
    }
}

// Positions of a page that some query of the call sees, and those that all do.
struct Seen {
  int low, high, all_begin, all_end;
};

// out (Q, D) = out * keep + scores (Q, `width`) * values, for d0 .. d0+W*kVecs-1.
template <KvType kType, int Q, int kVecs>
void values_of(const AttentionArgs& a, const std::byte* values, const std::byte* next, int d0,
               Seen seen, const float* scores, int width, const float* keep, float* out) {
  using E = Element<kType>;
  const int D = padded_head_dim(a.head_dim);
  Vf acc[Q][kVecs], value[kVecs];
  for (int q = 0; q < Q; ++q)
    for (int v = 0; v < kVecs; ++v) acc[q][v] = mul(load(out + q * D + d0 + v * W), set1(keep[q]));
  auto read = [&](int j) {
    std::int64_t at = (static_cast<std::int64_t>(j) * D + d0) * E::kBytes;
    for (int v = 0; v < kVecs; ++v) value[v] = E::get(values + at + v * W * E::kBytes);
    for (int line = 0; line < kVecs * W * E::kBytes; line += 64)
      _mm_prefetch(reinterpret_cast<const char*>(next + at + line), _MM_HINT_T0);
  };
  auto add_all = [&](int j) {
    read(j);
    for (int q = 0; q < Q; ++q) {
      Vf p = set1(scores[q * width + j]);
      for (int v = 0; v < kVecs; ++v) acc[q][v] = fma(p, value[v], acc[q][v]);
    }
  };
  // A query that does not see this position must not multiply its value: 0 * inf is NaN.
  auto add_seen = [&](int j) {
    read(j);
    for (int q = 0; q < Q; ++q)
      if (scores[q * width + j] != 0)
        for (int v = 0; v < kVecs; ++v)
          acc[q][v] = fma(set1(scores[q * width + j]), value[v], acc[q][v]);
  };
  int j = seen.low;
  for (; j < seen.high && j < seen.all_begin; ++j) add_seen(j);
  for (; j < seen.all_end; ++j) add_all(j);
  for (; j < seen.high; ++j) add_seen(j);
  for (int q = 0; q < Q; ++q)
    for (int v = 0; v < kVecs; ++v) store(out + q * D + d0 + v * W, acc[q][v]);
}

// The state of Q queries: what they see of the current tile (begin .. end-1), their running maximum
// and sum, and the factor that rescales earlier values to the new maximum.
template <int Q>
struct State {
  int begin[Q], end[Q];
  float top[Q], sum[Q], keep[Q];
};

template <int Q>
void softmax_of(const AttentionArgs& a, int base, int positions, int width, float* scores,
                State<Q>& t) {
  for (int q = 0; q < Q; ++q) {
    float* s = scores + q * width;
    const int begin = a.first[q] > base ? a.first[q] - base : 0;
    const int end = a.last[q] + 1 - base < positions ? a.last[q] + 1 - base : positions;
    t.begin[q] = begin, t.end[q] = end, t.keep[q] = 1;
    if (begin >= end) {
      std::memset(s, 0, sizeof(float) * positions);
      continue;
    }
    for (int j = 0; j < begin; ++j) s[j] = -INFINITY;
    for (int j = end; j < positions; ++j) s[j] = -INFINITY;
    Vf best = load(s);
    for (int j = W; j < positions; j += W) best = max(best, load(s + j));
    float now = reduce_max(best);
    if (now < t.top[q]) now = t.top[q];
    Vf total = zero(), shift = set1(now);
    for (int j = 0; j < positions; j += W) {
      Vf p = exp(sub(load(s + j), shift));
      store(s + j, p);
      total = add(total, p);
    }
    const float top = t.top[q];
    t.keep[q] = top == -INFINITY ? 0 : top == now ? 1 : std::exp(top - now);
    t.sum[q] = t.sum[q] * t.keep[q] + reduce_add(total);
    t.top[q] = now;
  }
}

// What the queries see of a page that starts at `at` within the tile.
template <int Q>
Seen seen_of(const State<Q>& t, int at, int P) {
  Seen seen{P, 0, 0, P};
  for (int q = 0; q < Q; ++q) {
    const int begin = t.begin[q] > at ? t.begin[q] - at : 0;
    const int end = t.end[q] - at < P ? t.end[q] - at : P;
    if (begin >= end) {
      seen.all_end = 0;
      continue;
    }
    if (begin < seen.low) seen.low = begin;
    if (end > seen.high) seen.high = end;
    if (begin > seen.all_begin) seen.all_begin = begin;
    if (end < seen.all_end) seen.all_end = end;
  }
  return seen;
}

// The pages first .. last of a tile that starts at page `base`, for Q queries. page(p): where page
// p is, or the last one.
template <KvType kType, int Q, typename Page>
void tile_of(const AttentionArgs& a, int base, int first, int last, Page&& page, float* scores,
             float* out, State<Q>& t) {
  const int P = a.page_size, D = padded_head_dim(a.head_dim), width = attention_tile(P);
  for (int p = first; p <= last; ++p) {
    const std::byte *keys = page(p) + a.k_offset, *next = page(p + 1) + a.k_offset;
    float* to = scores + (p - base) * P;
    in_turn<Q>([&]<int kFirst, int kCount>() {
      constexpr int kWide = fitting(kCount, 32 / W), kNarrow = kWide < 16 / W ? kWide : 16 / W;
      int at = 0;
      for (; at + kWide * W <= P; at += kWide * W)
        scores_of<kType, kFirst, kCount, kWide>(a, keys, next, at, width, to);
      for (; at < P; at += kNarrow * W)
        scores_of<kType, kFirst, kCount, kNarrow>(a, keys, next, at, width, to);
    });
  }
  // No query sees pages before the first one.
  softmax_of<Q>(a, base * P, (last - base + 1) * P, width, scores, t);
  for (int p = first; p <= last; ++p) {
    const std::byte *values = page(p) + a.v_offset, *next = page(p + 1) + a.v_offset;
    const float* from = scores + (p - base) * P;
    const Seen seen = seen_of<Q>(t, (p - base) * P, P);
    in_turn<Q>([&]<int kFirst, int kCount>() {
      constexpr int kVecs = fitting(kCount, 64 / W);
      const float *weights = from + kFirst * width, *keep = t.keep + kFirst;
      float* to = out + kFirst * D;
      int d = 0;
      for (; d + kVecs * W <= D; d += kVecs * W)
        values_of<kType, kCount, kVecs>(a, values, next, d, seen, weights, width, keep, to);
      for (; d < D; d += W)
        values_of<kType, kCount, 1>(a, values, next, d, seen, weights, width, keep, to);
    });
    for (float& keep : t.keep) keep = 1;
  }
}

template <KvType kType, int Q>
void attend(const AttentionArgs& a) {
  const int D = padded_head_dim(a.head_dim);
  float* scores = a.scratch;
  float* out = a.scratch + static_cast<std::int64_t>(kMaxQueries) * attention_tile(a.page_size);
  State<Q> state;
  int first = a.first[0], last = a.last[0];
  for (int q = 0; q < Q; ++q) {
    state.top[q] = -INFINITY, state.sum[q] = 0;
    if (a.first[q] < first) first = a.first[q];
    if (a.last[q] > last) last = a.last[q];
  }
  std::memset(out, 0, sizeof(float) * Q * D);
  const int begin = first / a.page_size, end = last / a.page_size;
  const int pages = attention_tile(a.page_size) / a.page_size;
  auto page = [&](int p) { return a.pages + a.block_table[p < end ? p : end] * a.page_bytes; };
  for (int base = begin / pages * pages; base <= end; base += pages)
    tile_of<kType, Q>(a, base, base < begin ? begin : base,
                      base + pages <= end ? base + pages - 1 : end, page, scores, out, state);
  for (int q = 0; q < Q; ++q) {
    Vf inverse = set1(1 / state.sum[q]);
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
      // A finite value beyond fp16's range saturates: an infinity would spread to other rows.
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
