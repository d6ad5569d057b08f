// Speed of the CUDA kernels alone, in graphs with programmatic dependent launch (NO_PDL: without).
//   kernel_bench [shapes | model | prefill | attention] [PEAK TB/s]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernel_tool.h"

using namespace vitrine;
using namespace vitrine::cuda;

namespace {

double peak = 4.55e12;
constexpr DType kQ4_0{2}, kQ8_0{8}, kQ4_K{12}, kQ6_K{14};

struct Layer {
  std::unique_ptr<CudaWeight> q, k, v, o, gate, up, down;
};

struct ModelShape {
  const char* name;
  int layers, E, KV, F, V;
};

struct Mix {
  const char* name;
  DType base, more;  // more: v and down of half of the layers, and the head
};

class Chain {
 public:
  Chain(Context& c, const ModelShape& s, const Mix& mix, int rows, bool head)
      : c_(c),
        x_(std::size_t(rows) * s.E),
        q_(std::size_t(rows) * s.E),
        k_(std::size_t(rows) * s.KV),
        v_(std::size_t(rows) * s.KV),
        f_(std::size_t(rows) * s.F),
        logits_(head ? std::size_t(rows) * s.V : 1),
        norm_(normal(s.E, 3)) {
    for (int i = 0; i < s.layers; ++i) {
      DType more = i % 2 ? mix.more : mix.base;
      layers_.push_back({make(mix.base, s.E, s.E), make(mix.base, s.KV, s.E), make(more, s.KV, s.E),
                         make(mix.base, s.E, s.E), make(mix.base, s.F, s.E),
                         make(mix.base, s.F, s.E), make(more, s.E, s.F)});
    }
    if (head) head_ = make(mix.more, s.V, s.E);
    fill_random(x_.get(), std::size_t(rows) * s.E * 4);
    fill_random(q_.get(), std::size_t(rows) * s.E * 4);
  }
  double bytes() const { return bytes_; }
  double microseconds(std::int64_t T) {
    return graph_time(c_, [&] {
      MatmulInput x{x_.get(), T, norm_.get(), 1e-5f};
      for (const Layer& l : layers_) {
        MatmulOutput qkv[3] = {{q_.get(), l.q.get()}, {k_.get(), l.k.get()}, {v_.get(), l.v.get()}};
        MatmulOutput o{x_.get(), l.o.get(), nullptr, x_.get()},
            down{x_.get(), l.down.get(), nullptr, x_.get()};
        begin_op(c_), matmul_group(c_, qkv, x);
        begin_op(c_), matmul_group(c_, {&o, 1}, {q_.get(), T, nullptr, 0});
        begin_op(c_), matmul_glu(c_, f_.get(), x, *l.gate, *l.up, Activation::kSilu);
        begin_op(c_), matmul_group(c_, {&down, 1}, {f_.get(), T, nullptr, 0});
      }
      MatmulOutput logits{logits_.get(), head_.get()};
      begin_op(c_);
      if (head_) matmul_group(c_, {&logits, 1}, x);
    });
  }

 private:
  std::unique_ptr<CudaWeight> make(DType t, int N, int K) {
    auto w = random_weight(t, N, K);
    bytes_ += static_cast<double>(w->bytes());
    return w;
  }
  Context& c_;
  double bytes_ = 0;
  std::vector<Layer> layers_;
  std::unique_ptr<CudaWeight> head_;
  DeviceArray<float> x_, q_, k_, v_, f_, logits_, norm_;
};

const Mix kMixes[] = {{"bf16", DType::kBF16, DType::kBF16},
                      {"q8_0", kQ8_0, kQ8_0},
                      {"q4_k_m", kQ4_K, kQ6_K},
                      {"q4_0", kQ4_0, kQ4_0}};

void bench_models(Context& c) {
  for (const ModelShape& s : {ModelShape{"1b", 16, 2048, 512, 8192, 128256},
                              ModelShape{"8b", 32, 4096, 1024, 14336, 128256}})
    for (const Mix& mix : kMixes) {
      Chain chain(c, s, mix, 64, true);
      std::printf("%s %s, %.2f GB:\n", s.name, mix.name, chain.bytes() / 1e9);
      for (int T : {1, 2, 4, 8, 16, 64}) {
        double us = chain.microseconds(T);
        std::printf("  %2d rows %6.0f us  %6.0f tok/s  %3.0f %%\n", T, us, T * 1e6 / us,
                    1e8 * chain.bytes() / us / peak);
      }
    }
}

void bench_prefill(Context& c) {
  for (const Mix& mix : kMixes) {
    constexpr int kLayers = 4;
    Chain chain(c, {"8b", kLayers, 4096, 1024, 14336, 0}, mix, 4096, false);
    for (int T : {65, 128, 192, 256, 512, 1024, 2048, 4096}) {
      double us = chain.microseconds(T) * 32 / kLayers;
      double flops = 2.0 * T * 32 * (2.0 * 4096 * 4096 + 2.0 * 1024 * 4096 + 3.0 * 4096 * 14336);
      std::printf("prefill 8b %s %d rows: %.1f ms, %.0f tok/s, %.0f TFLOP/s\n", mix.name, T,
                  us / 1000, T / us * 1e6, flops / us / 1e6);
    }
  }
}

void bench_shapes(Context& c) {
  DeviceArray<float> x(std::size_t{64} * 16384), out(std::size_t{64} * 131072);
  fill_random(x.get(), std::size_t{64} * 16384 * 4);
  for (DType t : {DType::kBF16, kQ8_0, kQ4_K, kQ6_K, kQ4_0})
    for (auto [N, K] : {std::pair{2048, 2048},
                        {8192, 2048},
                        {2048, 8192},
                        {4096, 4096},
                        {6144, 4096},
                        {28672, 4096},
                        {4096, 14336},
                        {128256, 4096}}) {
      // More than the cache holds.
      std::int64_t bytes = packed_bytes(t, N, K, WeightUse::kMatmul),
                   copies = std::clamp<std::int64_t>((400 << 20) / bytes, 2, 32);
      std::vector<std::unique_ptr<CudaWeight>> weights;
      for (std::int64_t i = 0; i < copies; ++i) weights.push_back(random_weight(t, N, K));
      std::printf("type %2d %6d x %-5d", static_cast<int>(t), N, K);
      for (int T : {1, 2, 4, 8, 16, 64}) {
        double us = graph_time(c,
                               [&] {
                                 for (auto& w : weights)
                                   matmul(c, out.get(), x.get(), T, *w, nullptr);
                               }) /
                    static_cast<double>(copies);
        std::printf("  %d: %.1f us %.0f %%", T, us, 1e8 * static_cast<double>(bytes) / us / peak);
      }
      std::printf("\n");
    }
}

// S sequences of `length` positions, `rows` of which are this step's.
double attention_time(Context& c, int S, int length, int rows) {
  constexpr int H = 32, K = 8, D = 128, P = 32;
  int B = length / P, T = S * rows;
  std::size_t bytes = std::size_t(S) * B * 2 * K * P * D * 2,
              copies = std::clamp<std::size_t>((300 << 20) / bytes, 1, 16);
  DeviceArray<std::byte> kv(bytes * copies);
  fill_random(kv.get(), bytes * copies);
  std::vector<std::int32_t> table(std::size_t(S) * B), positions, offsets{0};
  for (std::size_t i = 0; i < table.size(); ++i)
    table[i] = static_cast<std::int32_t>(table.size() - 1 - i);
  for (int s = 0; s < S; ++s) {
    for (int r = 0; r < rows; ++r) positions.push_back(length - rows + r);
    offsets.push_back(static_cast<int>(positions.size()));
  }
  DeviceArray<std::int32_t> dt(table), dp(positions), doff(offsets);
  DeviceArray<float> q(normal(std::size_t(T) * H * D, 1)), out(std::size_t(T) * H * D);
  auto i32 = [](const DeviceArray<std::int32_t>& d, Shape shape) {
    return Tensor{d.get(), DType::kI32, shape};
  };
  KvIndex index{i32(dp, {T}), i32(doff, {S + 1}), i32(dp, {T}), i32(dt, {S, B})};
  return graph_time(c,
                    [&] {
                      for (std::size_t i = 0; i < copies; ++i) {
                        KvCache cache{{KvLayout::uniform(K, D, DType::kF16), P},
                                      std::int64_t(table.size()),
                                      kv.get() + bytes * i};
                        tensor_attention(c, out.get(), q.get(), T, H, cache, index, {0.088f, 0, 0});
                      }
                    }) /
         static_cast<double>(copies);
}

void bench_attention(Context& c) {
  for (auto [S, length] : {std::pair{1, 128},
                           {1, 1024},
                           {1, 4096},
                           {1, 16384},
                           {1, 32768},
                           {8, 1024},
                           {8, 4096},
                           {8, 16384},
                           {64, 512},
                           {64, 1024},
                           {64, 4096},
                           {64, 16384}}) {
    double us = attention_time(c, S, length, 1), bytes = 4096.0 * S * length;
    std::printf("decode attention %2d x %5d: %7.1f us  %.2f TB/s  %3.0f %%\n", S, length, us,
                bytes / us / 1e6, 1e8 * bytes / us / peak);
  }
  for (auto [T, before] : {std::pair{512, 0}, {2048, 0}, {2048, 6144}}) {
    double us = attention_time(c, 1, T + before, T);
    std::printf("prefill attention %d after %d: %.0f us, %.0f TFLOP/s\n", T, before, us,
                4.0 * T * (before + T / 2.0) * 4096 / us / 1e6);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Context c = make_context();
  auto wanted = [&](const char* name) { return argc < 2 || std::strcmp(argv[1], name) == 0; };
  if (argc > 2) peak = std::atof(argv[2]) * 1e12;
  if (wanted("model")) bench_models(c);
  if (wanted("attention")) bench_attention(c);
  if (wanted("prefill")) bench_prefill(c);
  if (wanted("shapes")) bench_shapes(c);
}
