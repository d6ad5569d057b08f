#include <algorithm>
#include <cmath>

#include "kernels/ref/backend.h"
#include "quant/format.h"

namespace vitrine::ref {
namespace {

// Element e of page `page`: K at (head, offset, d), V behind all of K.
std::byte* element(const KvCache& c, std::int64_t page, int value, std::int64_t head,
                   std::int64_t offset, std::int64_t d) {
  const KvShape& s = c.shape;
  std::int64_t width = s.dtype == DType::kF32 ? 4 : 2;
  std::int64_t half = static_cast<std::int64_t>(s.kv_heads) * s.page_size * s.head_dim;
  std::int64_t index = (2 * page + value) * half + (head * s.page_size + offset) * s.head_dim + d;
  return c.data + index * width;
}

}  // namespace

void RefBackend::store_kv_(Tensor k, Tensor v, const KvCache& cache, const KvIndex& index) {
  const Format* format = find_format(cache.shape.dtype);
  std::int64_t T = k.dim(0), K = k.dim(1), D = k.dim(2), P = cache.shape.page_size;
  for (std::int64_t t = 0; t < T; ++t) {
    std::int64_t page = index.slots.i32()[t] / P, offset = index.slots.i32()[t] % P;
    for (std::int64_t h = 0; h < K; ++h) {
      format->encode(k.f32() + (t * K + h) * D, D, element(cache, page, 0, h, offset, 0));
      format->encode(v.f32() + (t * K + h) * D, D, element(cache, page, 1, h, offset, 0));
    }
  }
}

void RefBackend::attention_(Tensor out, Tensor q, const KvCache& cache, const KvIndex& index,
                            const AttentionParams& params) {
  const Format* format = find_format(cache.shape.dtype);
  std::int64_t H = q.dim(1), D = q.dim(2), P = cache.shape.page_size, K = cache.shape.kv_heads;
  std::int64_t S = index.row_offsets.dim(0) - 1, B = index.block_table.dim(1);
  std::vector<float> scores, row(D);
  for (std::int64_t s = 0; s < S; ++s)
    for (std::int64_t t = index.row_offsets.i32()[s]; t < index.row_offsets.i32()[s + 1]; ++t)
      for (std::int64_t h = 0; h < H; ++h) {
        std::int64_t last = index.positions.i32()[t], kv = h / (H / K);
        std::int64_t first =
            params.window > 0 ? std::max<std::int64_t>(0, last - params.window + 1) : 0;
        const float* query = q.f32() + (t * H + h) * D;
        float* to = out.f32() + (t * H + h) * D;
        auto page = [&](std::int64_t p) { return index.block_table.i32()[s * B + p / P]; };
        scores.assign(last - first + 1, 0);
        float top = -INFINITY, sum = 0;
        for (std::int64_t p = first; p <= last; ++p) {
          format->decode(element(cache, page(p), 0, kv, p % P, 0), D, row.data());
          float score = 0;
          for (std::int64_t d = 0; d < D; ++d) score += query[d] * row[d];
          score *= params.scale;
          if (params.softcap > 0) score = params.softcap * std::tanh(score / params.softcap);
          scores[p - first] = score;
          top = std::max(top, score);
        }
        for (float& score : scores) sum += score = std::exp(score - top);
        std::fill(to, to + D, 0.0f);
        for (std::int64_t p = first; p <= last; ++p) {
          format->decode(element(cache, page(p), 1, kv, p % P, 0), D, row.data());
          for (std::int64_t d = 0; d < D; ++d) to[d] += scores[p - first] / sum * row[d];
        }
      }
}

}  // namespace vitrine::ref
