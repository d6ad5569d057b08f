#include <algorithm>
#include <cmath>

#include "kernels/ref/backend.h"
#include "quant/format.h"

namespace vitrine::ref {
namespace {

// The K rows of a cache, or its V rows, one per page, head and position within the page.
class Rows {
 public:
  static Rows keys(const KvCache& c) { return {c, c.shape.layout.k, 0}; }
  static Rows values(const KvCache& c) {
    const KvLayout& l = c.shape.layout;
    return {c, l.v, kv_row_bytes(l.k) * l.heads * c.shape.page_size};
  }
  std::int64_t width() const { return width_; }
  void store(const float* x, std::int64_t slot, std::int64_t head) const {
    format_->encode(x, blocks_, at(slot, head));
  }
  void load(std::int64_t slot, std::int64_t head, float* x) const {
    format_->decode(at(slot, head), blocks_, x);
  }

 private:
  Rows(const KvCache& c, const KvPart& part, std::int64_t start)
      : first_(c.data + start),
        page_bytes_(plain_page_bytes(c.shape)),
        row_bytes_(kv_row_bytes(part)),
        page_size_(c.shape.page_size),
        width_(part.width),
        format_(find_format(part.type)),
        blocks_(part.width / format_->info.block) {}
  std::byte* at(std::int64_t slot, std::int64_t head) const {
    return first_ + slot / page_size_ * page_bytes_ +
           (head * page_size_ + slot % page_size_) * row_bytes_;
  }

  std::byte* first_;
  std::int64_t page_bytes_, row_bytes_, page_size_, width_;
  const Format* format_;
  std::int64_t blocks_;
};

}  // namespace

void RefBackend::store_kv_(Tensor k, Tensor v, const KvCache& cache, const KvIndex& index) {
  const Rows keys = Rows::keys(cache), values = Rows::values(cache);
  std::int64_t T = k.dim(0), K = k.dim(1);
  for (std::int64_t t = 0; t < T; ++t)
    for (std::int64_t h = 0; h < K; ++h) {
      keys.store(k.f32() + (t * K + h) * keys.width(), index.slots.i32()[t], h);
      values.store(v.f32() + (t * K + h) * values.width(), index.slots.i32()[t], h);
    }
}

void RefBackend::attention_(Tensor out, Tensor q, const KvCache& cache, const KvIndex& index,
                            const AttentionParams& params) {
  const Rows keys = Rows::keys(cache), values = Rows::values(cache);
  std::int64_t H = q.dim(1), D = keys.width(), Dv = values.width();
  std::int64_t P = cache.shape.page_size, K = cache.shape.layout.heads;
  std::int64_t S = index.row_offsets.dim(0) - 1, B = index.block_table.dim(1);
  std::vector<float> scores, row(std::max(D, Dv));
  for (std::int64_t s = 0; s < S; ++s)
    for (std::int64_t t = index.row_offsets.i32()[s]; t < index.row_offsets.i32()[s + 1]; ++t)
      for (std::int64_t h = 0; h < H; ++h) {
        std::int64_t last = index.positions.i32()[t], kv = h / (H / K);
        std::int64_t first =
            params.window > 0 ? std::max<std::int64_t>(0, last - params.window + 1) : 0;
        const float* query = q.f32() + (t * H + h) * D;
        float* to = out.f32() + (t * H + h) * Dv;
        auto slot = [&](std::int64_t p) {
          return index.block_table.i32()[s * B + p / P] * P + p % P;
        };
        scores.assign(last - first + 1, 0);
        float top = -INFINITY, sum = 0;
        for (std::int64_t p = first; p <= last; ++p) {
          keys.load(slot(p), kv, row.data());
          float score = 0;
          for (std::int64_t d = 0; d < D; ++d) score += query[d] * row[d];
          score *= params.scale;
          if (params.softcap > 0) score = params.softcap * std::tanh(score / params.softcap);
          scores[p - first] = score;
          top = std::max(top, score);
        }
        for (float& score : scores) sum += score = std::exp(score - top);
        std::fill(to, to + Dv, 0.0f);
        for (std::int64_t p = first; p <= last; ++p) {
          values.load(slot(p), kv, row.data());
          for (std::int64_t d = 0; d < Dv; ++d) to[d] += scores[p - first] / sum * row[d];
        }
      }
}

}  // namespace vitrine::ref
