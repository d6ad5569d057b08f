// The CUDA kernels against f64 on the host: GEMMs of every format, and attention. Random data,
// outputs poisoned before, NaN where no key was stored. Exit status 1 on a wrong result.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <thread>

#include "kernel_tool.h"
#include "quant/format.h"
#include "quant/half.h"

using namespace vitrine;
using namespace vitrine::cuda;

namespace {

double error_of(const std::vector<float>& got, const std::vector<double>& want) {
  double off = 0, all = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!std::isfinite(got[i])) return INFINITY;
    off += (got[i] - want[i]) * (got[i] - want[i]), all += want[i] * want[i];
  }
  return std::sqrt(off / all);
}

struct Matrix {
  std::vector<float> w;
  std::unique_ptr<Weight> packed;
  std::int64_t N, K;

  Matrix(Context& c, const Format& f, std::int64_t rows, std::int64_t cols, unsigned seed)
      : N(rows), K(cols) {
    w = normal(N * K, seed, 0.05f);
    std::vector<std::byte> bytes(format_bytes(f.info, N * K));
    f.encode(w.data(), N * K / f.info.block, bytes.data());
    f.decode(bytes.data(), N * K / f.info.block, w.data());
    MatrixSource m{.name = "w", .dtype = f.info.dtype, .cols = K, .row_data = {}, .owner = {}};
    for (std::int64_t n = 0; n < N; ++n)
      m.row_data.push_back(bytes.data() + n * format_bytes(f.info, K));
    packed = std::move(pack_weight(c, m, WeightUse::kMatmul)).value();
  }
  const CudaWeight* weight() const { return static_cast<const CudaWeight*>(packed.get()); }
  std::vector<double> product(const std::vector<double>& x, std::int64_t T) const {
    std::vector<double> out(T * N);
    std::vector<std::thread> threads;
    int P = static_cast<int>(std::thread::hardware_concurrency());
    for (int p = 0; p < P; ++p)
      threads.emplace_back([&, p] {
        for (std::int64_t n = p; n < N; n += P)
          for (std::int64_t t = 0; t < T; ++t)
            for (std::int64_t k = 0; k < K; ++k) out[t * N + n] += x[t * K + k] * w[n * K + k];
      });
    for (std::thread& t : threads) t.join();
    return out;
  }
};

std::vector<double> normed(const std::vector<double>& x, const std::vector<float>& w,
                           std::int64_t T) {
  std::size_t K = w.size();
  std::vector<double> out(x.size());
  for (std::int64_t t = 0; t < T; ++t) {
    double sum = 0;
    for (std::size_t k = 0; k < K; ++k) sum += x[t * K + k] * x[t * K + k];
    for (std::size_t k = 0; k < K; ++k)
      out[t * K + k] = x[t * K + k] * w[k] / std::sqrt(sum / K + 1e-5);
  }
  return out;
}

// The largest error of a product with bias and residual, of three at once with a norm, and of a
// glu. `first`: the first row of the product.
double check_products(Context& c, const Matrix& a, const Matrix& b, const Matrix& d, std::int64_t T,
                      std::vector<float>& first) {
  auto x = normal(T * a.K, 10), norm = normal(a.K, 5), bias = normal(a.N, 6),
       residual = normal(T * a.N, 7);
  for (std::int64_t k = 0; k < a.K; k += 37) x[k] *= 50;
  DeviceArray<float> dx(x), dn(norm), db(bias), dr(residual), o1(T * a.N), o2(T * b.N), o3(T * d.N);
  std::vector<double> plain(x.begin(), x.end()), scaled = normed(plain, norm, T);
  MatmulInput with_norm{dx.get(), T, dn.get(), 1e-5f};
  o1.poison();
  MatmulOutput one{o1.get(), a.weight(), db.get(), dr.get()};
  matmul_group(c, {&one, 1}, {dx.get(), T, nullptr, 0});
  synchronize(c);
  auto want = a.product(plain, T);
  for (std::size_t i = 0; i < want.size(); ++i) want[i] += bias[i % a.N] + residual[i];
  auto got = o1.read();
  first.assign(got.begin(), got.begin() + a.N);
  double worst = error_of(got, want);
  o1.poison(), o2.poison(), o3.poison();
  MatmulOutput three[3] = {{o1.get(), a.weight()}, {o3.get(), d.weight()}, {o2.get(), b.weight()}};
  matmul_group(c, three, with_norm);
  synchronize(c);
  auto gate = a.product(scaled, T), up = b.product(scaled, T);
  worst = std::max({worst, error_of(o1.read(), gate), error_of(o2.read(), up),
                    error_of(o3.read(), d.product(scaled, T))});
  o1.poison();
  matmul_glu(c, o1.get(), with_norm, *a.weight(), *b.weight(), Activation::kSilu);
  synchronize(c);
  for (std::size_t i = 0; i < gate.size(); ++i)
    gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
  return std::max(worst, error_of(o1.read(), gate));
}

int check_format(Context& c, const Format& f) {
  int bad = 0;
  std::vector<std::pair<int, int>> shapes{
      {200, 2048}, {48, f.info.block > 32 ? 256 : 96}, {136, 14336}};
  if (f.info.block == 1) shapes.push_back({37, 50});
  double limit = f.info.dtype == DType::kBF16 || f.info.dtype == DType::kF32 ? 1e-2 : 1e-3;
  for (auto [N, K] : shapes) {
    Matrix a(c, f, N, K, 1), b(c, f, N, K, 2), d(c, f, 32, K, 3);
    std::vector<float> first, alone;
    for (bool deterministic : {false, true})
      for (int T : {1, 2, 3, 4, 5, 8, 9, 16, 17, 40, 64, 65, 130, 300}) {
        c.deterministic = deterministic;
        double error = check_products(c, a, b, d, T, first);
        if (deterministic && T == 1) alone = first;
        bool differs = deterministic && first != alone;
        if (!(error < limit) || differs)
          ++bad, std::printf("%s %d x %d, %d rows, deterministic %d: %.1e%s\n", f.info.name, N, K,
                             T, deterministic, error, differs ? ", the first row differs" : "");
      }
  }
  c.deterministic = false;
  return bad;
}

struct Scene {
  int H, K, D, P, window;
  float cap;
  DType dtype;
  std::uint16_t encode(float x) const {
    return dtype == DType::kF16 ? float_to_fp16(x) : float_to_bf16(x);
  }
  float decode(std::uint16_t x) const {
    return dtype == DType::kF16 ? fp16_to_float(x) : bf16_to_float(x);
  }
};

Tensor i32(const DeviceArray<std::int32_t>& d, Shape shape) {
  return {d.get(), DType::kI32, shape};
}

// Sequences with histories and rows of this step. `last_row`: the output of the last row, whose
// inputs depend on its position alone.
int check_attention(Context& c, const Scene& s, const std::vector<int>& history,
                    const std::vector<int>& rows, std::vector<float>& last_row) {
  int S = static_cast<int>(rows.size()), T = 0, longest = 0, pages = 0;
  for (int i = 0; i < S; ++i) T += rows[i], longest = std::max(longest, history[i] + rows[i]);
  int B = (longest + s.P - 1) / s.P + 2, G = s.H / s.K;
  std::vector<std::int32_t> table(S * B, -1), positions, offsets{0};
  std::vector<float> q;
  for (int i = 0; i < S; ++i) {
    for (int p = 0; p * s.P < history[i] + rows[i]; ++p) table[i * B + p] = pages++;
    auto all = normal(std::size_t(history[i] + rows[i]) * s.H * s.D, 3);
    q.insert(q.end(), all.begin() + std::ptrdiff_t(history[i]) * s.H * s.D, all.end());
    for (int r = 0; r < rows[i]; ++r) positions.push_back(history[i] + r);
    offsets.push_back(static_cast<int>(positions.size()));
  }
  for (auto& page : table)
    if (page >= 0) page = pages - 1 - page;
  std::size_t half = std::size_t(s.K) * s.P * s.D;
  std::vector<std::uint16_t> kv(2 * half * pages, 0xffff);
  auto at = [&](int i, int p, int value, int head) {
    return (2 * std::size_t(table[i * B + p / s.P]) + value) * half +
           (std::size_t(head) * s.P + p % s.P) * s.D;
  };
  for (int i = 0; i < S; ++i) {
    auto numbers = normal(std::size_t(history[i] + rows[i]) * 2 * s.K * s.D, 7);
    for (std::size_t n = 0; n < numbers.size(); ++n) {
      int d = static_cast<int>(n % s.D), h = static_cast<int>(n / s.D % s.K),
          v = static_cast<int>(n / s.D / s.K % 2);
      kv[at(i, static_cast<int>(n / s.D / s.K / 2), v, h) + d] = s.encode(numbers[n]);
    }
  }
  std::vector<double> want(q.size());
  float scale = 1 / std::sqrt(static_cast<float>(s.D));
  for (int i = 0, t = 0; i < S; ++i)
    for (int r = 0; r < rows[i]; ++r, ++t)
      for (int h = 0; h < s.H; ++h) {
        int last = positions[t], first = s.window > 0 ? std::max(0, last - s.window + 1) : 0;
        std::vector<double> weights;
        double sum = 0;
        const float* query = q.data() + (std::size_t(t) * s.H + h) * s.D;
        double* out = want.data() + (std::size_t(t) * s.H + h) * s.D;
        for (int p = first; p <= last; ++p) {
          double score = 0;
          for (int d = 0; d < s.D; ++d) score += query[d] * s.decode(kv[at(i, p, 0, h / G) + d]);
          score *= scale;
          if (s.cap > 0) score = s.cap * std::tanh(score / s.cap);
          weights.push_back(std::exp(score)), sum += weights.back();
        }
        for (int p = first; p <= last; ++p)
          for (int d = 0; d < s.D; ++d)
            out[d] += weights[p - first] / sum * s.decode(kv[at(i, p, 1, h / G) + d]);
      }
  // Pages behind the window are given back.
  for (int i = 0; i < S && s.window > 0; ++i)
    for (int p = 0; (p + 1) * s.P <= history[i] - s.window + 1; ++p) table[i * B + p] = -1;
  DeviceArray<std::uint16_t> dkv(kv);
  DeviceArray<std::int32_t> dt(table), dp(positions), doff(offsets);
  DeviceArray<float> dq(q), out(q.size());
  out.poison();
  KvCache cache{
      {KvLayout::uniform(s.K, s.D, s.dtype), s.P}, pages, reinterpret_cast<std::byte*>(dkv.get())};
  KvIndex index{i32(dp, {T}), i32(doff, {S + 1}), i32(dp, {T}), i32(dt, {S, B})};
  bool taken =
      tensor_attention(c, out.get(), dq.get(), T, s.H, cache, index, {scale, s.window, s.cap});
  synchronize(c);
  auto got = out.read();
  last_row.assign(got.end() - std::ptrdiff_t(s.H) * s.D, got.end());
  double error = error_of(got, want);
  if (taken && error < (s.dtype == DType::kF16 ? 2e-3 : 1.5e-2)) return 0;
  std::printf("attention %d/%d heads of %d, pages of %d, window %d, cap %g, %d rows of %d: %.1e\n",
              s.H, s.K, s.D, s.P, s.window, s.cap, T, S, error);
  return 1;
}

int check_scene(Context& c, const Scene& s) {
  std::vector<float> row, in_prompt, alone;
  int bad = 0;
  for (bool deterministic : {false, true}) {
    c.deterministic = deterministic;
    bad += check_attention(c, s, {700}, {1}, row) + check_attention(c, s, {0}, {1}, row) +
           check_attention(c, s, {0, 37, 90}, {40, 1, 23}, row) +
           check_attention(c, s, {3, 300, 64, 127}, {1, 1, 1, 1}, row) +
           check_attention(c, s, {2000, 5}, {2, 3}, row) +
           check_attention(c, s, {0}, {200}, in_prompt) + check_attention(c, s, {199}, {1}, alone);
  }
  if (in_prompt != alone)
    ++bad, std::printf(
               "attention, deterministic, heads of %d: a row in a prompt and alone differ\n", s.D);
  c.deterministic = false;
  return bad;
}

}  // namespace

int main() {
  Context c = make_context();
  int bad = 0;
  for (const Format& f : all_formats()) bad += check_format(c, f);
  for (DType t : {DType::kF16, DType::kBF16})
    for (const Scene& s : {Scene{32, 8, 128, 32, 0, 0, t}, Scene{8, 8, 64, 16, 0, 0, t},
                           Scene{8, 2, 128, 16, 50, 0, t}, Scene{4, 1, 256, 32, 0, 30, t},
                           Scene{6, 2, 80, 16, 0, 0, t}, Scene{4, 2, 16, 16, 20, 5, t},
                           Scene{4, 4, 8, 16, 0, 0, t}, Scene{32, 1, 64, 16, 0, 0, t}})
      bad += check_scene(c, s);
  std::printf("%d wrong\n", bad);
  return bad != 0;
}
