#include "kernels/ref/backend.h"
#include "quant/format.h"

namespace vitrine::ref {

RowWeight::RowWeight(MatrixSource source)
    : Weight(source.rows(), source.cols, source.dtype,
             source.rows() * format_bytes(find_format(source.dtype)->info, source.cols)),
      source_(std::move(source)) {}

void RowWeight::decode_row(std::int64_t row, float* out) const {
  const Format* format = find_format(source_.dtype);
  format->decode(source_.row_data[row], source_.cols / format->info.block, out);
}

void RefBackend::embed_(Tensor out, const Weight& table, Tensor ids, float scale) {
  const auto& rows = static_cast<const RowWeight&>(table);
  std::int64_t T = out.dim(0), E = out.dim(1);
  for (std::int64_t t = 0; t < T; ++t) {
    float* to = out.f32() + t * E;
    rows.decode_row(ids.i32()[t], to);
    for (std::int64_t e = 0; e < E; ++e) to[e] *= scale;
  }
}

void RefBackend::matmul_(Tensor out, Tensor x, const Weight& w, Tensor bias) {
  const auto& rows = static_cast<const RowWeight&>(w);
  std::int64_t T = x.dim(0), N = w.rows(), K = w.cols();
  std::vector<float> row(K);
  for (std::int64_t n = 0; n < N; ++n) {
    rows.decode_row(n, row.data());
    for (std::int64_t t = 0; t < T; ++t) {
      float sum = 0;
      for (std::int64_t k = 0; k < K; ++k) sum += x.f32()[t * K + k] * row[k];
      out.f32()[t * N + n] = sum + (bias.defined() ? bias.f32()[n] : 0);
    }
  }
}

}  // namespace vitrine::ref
