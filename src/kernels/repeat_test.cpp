// A decoder's layer with one token a sequence: against ref, and recorded (Backend::repeat).
#include <algorithm>
#include <numeric>

#include "kernels/testing.h"

namespace vitrine::testing {
namespace {

struct LayerCase {
  DType base, more;  // types of the weights; more: of v and down
  int T, heads, kv_heads, head_dim, length, window;
  float softcap;
  bool norms, bias;
  DType pages;
};

// What happens to the outputs of attention and of the gate before the products take them.
enum class Between {
  kNothing,
  kMoved,         // to another tensor, which the products take
  kChanged,       // in place
  kChangedMoved,  // the same, into another tensor
};

// One layer of a decoder, one token a sequence.
class LayerScene {
 public:
  LayerScene(Backend& b, const LayerCase& s)
      : b_(b), s_(s), E_(s.heads * s.head_dim), KV_(s.kv_heads * s.head_dim) {
    x0_ = a_.random({s.T, E_});
    x_ = a_.f32({s.T, E_}), h_ = a_.f32({s.T, kF}), scratch_ = a_.f32({s.T, kF}),
    normed_ = a_.f32({s.T, E_});
    other_o_ = a_.f32({s.T, E_}), other_h_ = a_.f32({s.T, kF});
    std::vector<std::int32_t> rows(static_cast<std::size_t>(s.T));
    std::iota(rows.begin(), rows.end(), 0);
    rows_ = a_.i32(rows);
    q_ = a_.f32({s.T, s.heads, s.head_dim}), o_ = a_.f32({s.T, s.heads, s.head_dim});
    k_ = a_.f32({s.T, s.kv_heads, s.head_dim}), v_ = a_.f32({s.T, s.kv_heads, s.head_dim});
    norm_ = a_.random({E_}), head_norm_ = a_.random({s.head_dim}), bias_ = a_.random({KV_});
    wq_ = weight(s.base, E_, E_), wk_ = weight(s.base, KV_, E_), wv_ = weight(s.more, KV_, E_);
    wo_ = weight(s.base, E_, E_), gate_ = weight(s.base, kF, E_), up_ = weight(s.base, kF, E_);
    down_ = weight(s.more, E_, kF);
    fill_pages();
    std::vector<std::int32_t> positions, offsets{0}, slots;
    for (int t = 0; t < s.T; ++t) {
      int last = s.length + 7 * t;
      positions.push_back(last);
      offsets.push_back(t + 1);
      slots.push_back(pages_[t * B_ + last / kPage] * kPage + last % kPage);
    }
    index_ = {a_.i32(positions), a_.i32(offsets), a_.i32(slots), a_.i32(pages_).view({s.T, B_})};
    table_ = a_.random({s.T, s.head_dim / 2, 2});
  }

  void run(Between between) {
    InputNorm norm{norm_, 1e-5f, normed_};
    Tensor q = q_.view({s_.T, E_}), k = k_.view({s_.T, KV_}), v = v_.view({s_.T, KV_});
    MatmulPart parts[3] = {{q, wq_.get()}, {k, wk_.get()}, {v, wv_.get()}};
    if (s_.bias) parts[2].bias = bias_;
    b_.matmul_group(parts, x_, norm);
    HeadNorms heads;
    if (s_.norms) heads = {head_norm_, head_norm_, 1e-5f};
    b_.attend(o_, q_, k_, v_, heads, table_, cache_, index_, {0.1f, s_.window, s_.softcap});
    b_.matmul_add(x_, normed_, taken(o_.view({s_.T, E_}), other_o_, between), *wo_);
    b_.matmul_glu(h_, scratch_, x_, norm, *gate_, {}, *up_, {}, Activation::kSilu);
    b_.matmul_add(x_, normed_, taken(h_, other_h_, between), *down_);
  }

  // What the n-th time of asking gives.
  Tensor result(std::uint64_t key, Between between = Between::kNothing) {
    b_.write(x_.data, x0_.data, x0_.shape.elements() * 4);
    b_.begin_step(1, false);
    b_.repeat(key, [&] {
      run(between);
      run(between);
    });
    b_.wait(b_.end_step());
    Tensor out = a_.f32({s_.T, E_});
    std::memcpy(out.data, x_.data, static_cast<std::size_t>(x_.shape.elements()) * 4);
    return out;
  }

 private:
  static constexpr int kPage = 32, kF = 768;

  Tensor taken(Tensor output, Tensor other, Between between) {
    if (between == Between::kMoved) b_.gather_rows(other, output, rows_);
    if (between == Between::kChanged) b_.add(output, output, output);
    if (between == Between::kChangedMoved) b_.add(other, output, output);
    return between == Between::kNothing || between == Between::kChanged ? output : other;
  }
  std::unique_ptr<Weight> weight(DType dtype, int rows, int cols) {
    MatrixSource m = a_.matrix(*find_format(dtype), rows, cols, 0.02f);
    auto w = b_.pack(m, WeightUse::kMatmul);
    EXPECT_TRUE(w.ok()) << (w.ok() ? "" : w.error().message);
    return std::move(w).value();
  }
  // Keys and values of the positions before; NaN behind them.
  void fill_pages() {
    int longest = s_.length + 7 * s_.T + 1;
    B_ = (longest + kPage - 1) / kPage + 1;
    KvShape shape{KvLayout::uniform(s_.kv_heads, s_.head_dim, s_.pages), kPage};
    memory_ = std::move(b_.allocate(b_.kv_page_bytes(shape) * B_ * s_.T)).value();
    std::vector<std::byte> nan(static_cast<std::size_t>(b_.kv_page_bytes(shape) * B_ * s_.T),
                               std::byte{0xff});
    b_.write(memory_.data(), nan.data(), static_cast<std::int64_t>(nan.size()));
    cache_ = {shape, std::int64_t{B_} * s_.T, static_cast<std::byte*>(memory_.data())};
    for (int i = 0; i < B_ * s_.T; ++i) pages_.push_back(i);
    std::shuffle(pages_.begin(), pages_.end(), a_.rng());
    for (int t = 0; t < s_.T; ++t) {
      int n = s_.length + 7 * t;
      std::vector<std::int32_t> positions, slots;
      for (int p = 0; p < n; ++p) {
        positions.push_back(p);
        slots.push_back(pages_[t * B_ + p / kPage] * kPage + p % kPage);
      }
      KvIndex index{a_.i32(positions), a_.i32({0, n}), a_.i32(slots), a_.i32({0}).view({1, 1})};
      if (n > 0)
        b_.store_kv(a_.random({n, s_.kv_heads, s_.head_dim}),
                    a_.random({n, s_.kv_heads, s_.head_dim}), cache_, index);
    }
  }

  Backend& b_;
  LayerCase s_;
  int E_, KV_, B_ = 0;
  Arena a_{5};
  Tensor x0_, x_, h_, scratch_, normed_, q_, k_, v_, o_, norm_, head_norm_, bias_, table_;
  Tensor other_o_, other_h_, rows_;
  std::unique_ptr<Weight> wq_, wk_, wv_, wo_, gate_, up_, down_;
  std::vector<std::int32_t> pages_;
  Buffer memory_;
  KvCache cache_{};
  KvIndex index_{};
};

// bf16 where this build has no such format.
DType type(const char* name) {
  const Format* format = find_format(name);
  return format != nullptr ? format->info.dtype : DType::kBF16;
}

TEST(Repeat, ALayerAgreesWithRefAlsoWhenRecorded) {
  auto ref = make_backend("ref");
  std::vector<Candidate> all = candidates();
  for (Candidate& c : queueing_candidates()) all.push_back(std::move(c));
  constexpr DType kBF16 = DType::kBF16, kF16 = DType::kF16;
  const DType kQ4_0 = type("q4_0"), kQ8_0 = type("q8_0"), kQ4_K = type("q4_k"),
              kQ5_K = type("q5_k"), kQ6_K = type("q6_k");
  std::uint64_t key = 1;
  for (const LayerCase& s :
       std::vector<LayerCase>{{kBF16, kBF16, 1, 4, 2, 64, 0, 0, 0, false, false, kF16},
                              {kBF16, kBF16, 1, 8, 2, 64, 700, 0, 0, false, true, kBF16},
                              {kF16, kF16, 1, 4, 1, 128, 333, 0, 0, true, false, kF16},
                              {kQ8_0, kQ8_0, 1, 8, 1, 64, 1500, 100, 0, false, false, kF16},
                              {kQ4_K, kQ6_K, 1, 4, 4, 128, 40, 0, 30, false, false, kF16},
                              {kQ5_K, kQ4_0, 1, 4, 2, 128, 5000, 0, 0, true, true, kBF16},
                              {kQ4_0, kBF16, 2, 4, 2, 64, 31, 0, 0, false, false, kF16},
                              {kQ4_K, kQ6_K, 3, 8, 2, 64, 600, 64, 0, false, true, kF16},
                              {kBF16, kQ8_0, 4, 4, 2, 64, 64, 0, 0, false, false, kF16},
                              {kQ8_0, kQ8_0, 8, 4, 2, 64, 300, 0, 0, false, false, kF16},
                              {kQ6_K, kQ5_K, 7, 4, 2, 64, 15, 0, 0, false, false, kF16},
                              {kBF16, kBF16, 5, 4, 2, 64, 400, 0, 0, false, false, kF16},
                              {kBF16, kBF16, 64, 4, 4, 64, 20, 0, 0, false, false, kF16}}) {
    LayerScene reference(*ref, s);
    Tensor expected = reference.result(0);
    float size = 0;
    for (std::int64_t i = 0; i < expected.shape.elements(); ++i)
      size = std::max(size, std::fabs(expected.f32()[i]));
    ++key;
    for (const Candidate& c : all) {
      LayerScene scene(*c.backend, s);
      // As calls, recorded, replayed.
      for (int time = 0; time < 3; ++time)
        EXPECT_LE(max_difference(expected, scene.result(key)), 1e-2f * size)
            << c.label << ", type " << static_cast<int>(s.base) << ", " << s.T << " rows, "
            << s.length << " positions, time " << time << ", numbers of up to " << size;
    }
  }
}

// A product takes the rows that its tensor holds when it comes, to the bit, whatever the op before
// it may have left beside its output.
TEST(Repeat, AProductTakesWhatItsTensorHolds) {
  const DType kQ8_0 = type("q8_0");
  constexpr DType kBF16 = DType::kBF16, kF16 = DType::kF16, kF32 = DType::kF32;
  std::vector<Candidate> all = queueing_candidates();
  all.push_back({"cpu", make_backend("cpu")});
  std::uint64_t key = 1;
  for (const LayerCase& s :
       std::vector<LayerCase>{{kBF16, kBF16, 3, 4, 2, 64, 40, 0, 0, false, false, kF16},
                              {kBF16, kBF16, 5, 4, 2, 64, 400, 0, 0, false, false, kF16},
                              {kBF16, kBF16, 12, 4, 2, 128, 900, 0, 0, true, false, kBF16},
                              {kBF16, kQ8_0, 20, 4, 2, 64, 64, 0, 0, false, true, kF16},
                              {kF32, kBF16, 33, 4, 2, 64, 31, 0, 0, false, false, kF16},
                              {kBF16, kBF16, 64, 8, 4, 64, 20, 0, 0, false, false, kF16},
                              {kBF16, kBF16, 70, 8, 4, 64, 5, 0, 0, false, false, kF16}})
    for (const Candidate& c : all) {
      LayerScene scene(*c.backend, s);
      for (auto [one, other] : {std::pair{Between::kNothing, Between::kMoved},
                                std::pair{Between::kChanged, Between::kChangedMoved}}) {
        key += 2;
        // As calls, recorded, replayed.
        for (int time = 0; time < 3; ++time)
          EXPECT_TRUE(same_bits(scene.result(key, one), scene.result(key + 1, other)))
              << c.label << ", type " << static_cast<int>(s.base) << ", " << s.T << " rows, time "
              << time << (one == Between::kChanged ? ", changed" : "");
      }
    }
}

}  // namespace
}  // namespace vitrine::testing
