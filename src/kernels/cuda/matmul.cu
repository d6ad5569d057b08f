// Which kernel a product takes.
#include "kernels/cuda/matmul.h"

#include "kernels/cuda/matmul_kernels.cuh"

namespace vitrine::cuda {
namespace {

// Above this, decoding the weights once more pays.
constexpr int kMostTileRows = 128;

// A product with weights of one format.
struct Product {
  Job job;
  const CudaFormat* format;
};

void run(Context& c, const Product& product) {
  const Job& job = product.job;
  const CudaFormat& format = *product.format;
  c.shape[0] = job.T, c.shape[1] = job.segment[0].rows, c.shape[2] = job.K;
  c.bf16_operands = false;
  if (!c.deterministic && format.few_fits(c, job))
    format.few(c, job);
  else if (c.deterministic || job.T <= kMostTileRows ||
           !format.many(c, job, c.workspace, c.workspace_bytes))
    format.tile(c, job, c.workspace, c.workspace_bytes);
}

Product make_product(const Context& c, const MatmulInput& in, const CudaWeight& w) {
  std::int64_t K = w.cols();
  VT_CHECK(in.T > 0 && in.T <= INT32_MAX / 2 && K <= INT32_MAX / 8, "matmul: {} rows of {}", in.T,
           K);
  Product product{{}, &w.format()};
  Job& job = product.job;
  job.T = static_cast<int>(in.T), job.K = static_cast<int>(K);
  job.x = in.x, job.norm = in.norm, job.eps = in.eps;
  job.tickets = c.tickets;
  job.partial = reinterpret_cast<float*>(c.workspace);
  job.units = (job.K + w.format().unit_cols - 1) / w.format().unit_cols;
  return product;
}

int tiles_of(const CudaWeight& w) {
  return static_cast<int>((w.rows() + kTileRows - 1) / kTileRows);
}

Segment make_segment(const MatmulOutput& o, int first_tile) {
  return {reinterpret_cast<const std::uint32_t*>(o.w->data()),
          o.out,
          o.bias,
          o.residual,
          static_cast<int>(o.w->rows()),
          first_tile};
}

}  // namespace

void matmul_group(Context& c, std::span<const MatmulOutput> outputs, const MatmulInput& in) {
  Product products[kMaxOutputs];
  int count = 0;
  VT_CHECK(outputs.size() <= kMaxOutputs, "matmul_group: {} products at once", outputs.size());
  for (std::size_t i = 0; i < outputs.size() && in.T > 0;) {
    Product& product = products[count++] = make_product(c, in, *outputs[i].w);
    Job& job = product.job;
    for (; i < outputs.size() && &outputs[i].w->format() == product.format &&
           job.segments < kMaxSegments;
         ++i) {
      VT_CHECK(outputs[i].w->cols() == job.K, "matmul_group: {} and {} columns",
               outputs[i].w->cols(), job.K);
      job.segment[job.segments++] = make_segment(outputs[i], job.tiles);
      job.tiles += tiles_of(*outputs[i].w);
    }
  }
  for (int i = 0; i < count; ++i) {
    const Product* next = i + 1 < count ? &products[i + 1] : nullptr;
    if (next && in.T == 1 && !c.deterministic &&
        launch_pair(c, products[i].job, products[i].format->dtype, next->job, next->format->dtype))
      ++i;
    else
      run(c, products[i]);
  }
}

void matmul_glu(Context& c, float* out, const MatmulInput& in, const CudaWeight& gate,
                const CudaWeight& up, Activation activation) {
  VT_CHECK(gate.rows() == up.rows() && gate.cols() == up.cols() && &gate.format() == &up.format());
  if (in.T == 0) return;
  Product product = make_product(c, in, gate);
  Job& job = product.job;
  job.glu = true, job.activation = activation, job.segments = 2, job.tiles = tiles_of(gate);
  job.segment[0] = make_segment({out, &gate}, 0);
  job.segment[1] = make_segment({out, &up}, 0);
  run(c, product);
}

}  // namespace vitrine::cuda
