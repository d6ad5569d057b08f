// What Backend, Ops and Device do around every backend's own code: clocks, work, replay, devices.
#include "kernels/backend.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "kernels/counting.h"
#include "kernels/testing.h"

namespace vitrine::testing {
namespace {

using ::testing::HasSubstr;

class FakeWeight final : public Weight {
 public:
  FakeWeight(std::int64_t rows, std::int64_t cols, std::int64_t bytes)
      : Weight(rows, cols, DType::kF32, bytes) {}
};

// Computes nothing. Records at the second time of a key and replays from then on, as cuda does.
class FakeBackend final : public Backend {
 public:
  std::string name() const override { return "fake"; }
  std::string description() const override { return "fake"; }
  Peak measure_peak(DType) override { return {}; }
  Result<Buffer> allocate(std::int64_t) override { return Buffer(); }
  void write(void*, const void*, std::int64_t) override {}
  const void* read(const void* from, std::int64_t, void*) override { return from; }
  void copy(void*, const void*, std::int64_t) override {}
  std::int64_t packed_bytes(DType, std::int64_t, std::int64_t, WeightUse) const override {
    return 0;
  }
  Result<std::unique_ptr<Weight>> pack(const MatrixSource&, WeightUse) override {
    return std::unique_ptr<Weight>();
  }
  Status check_kv(const KvLayout&) const override { return Ok{}; }
  std::int64_t kv_page_bytes(const KvShape&) const override { return 0; }

  std::map<std::uint64_t, int> called;  // by key

 protected:
  void repeat_(std::uint64_t key, const std::function<void()>& calls) override {
    if (called[key] < 2) ++called[key], calls();
  }
  void embed_(Tensor, const Weight&, Tensor, float) override {}
  void matmul_(Tensor, Tensor, const Weight&, Tensor) override {}
  void rms_norm_(Tensor, Tensor, Tensor, float) override {}
  void layer_norm_(Tensor, Tensor, Tensor, Tensor, float) override {}
  void rope_table_(Tensor, Tensor, Tensor, float) override {}
  void rope_(Tensor, Tensor) override {}
  void store_kv_(Tensor, Tensor, const KvCache&, const KvIndex&) override {}
  void attention_(Tensor, Tensor, const KvCache&, const KvIndex&, const AttentionParams&) override {
  }
  void add_(Tensor, Tensor, Tensor) override {}
  void activate_(Tensor, Activation) override {}
  void glu_(Tensor, Tensor, Tensor, Activation) override {}
  void softcap_(Tensor, float) override {}
  void gather_rows_(Tensor, Tensor, Tensor) override {}
  void draw_(DrawnRow*, Tensor, const DrawRow*, Tensor, bool) override {}
};

// Tensors of the shapes that the ops take: T = 3 rows, E = F = 8, two heads of four.
struct Operands {
  float floats[64] = {};
  std::int32_t ints[8] = {};
  Tensor x{floats, DType::kF32, {3, 8}}, row{floats, DType::kF32, {8}};
  Tensor heads{floats, DType::kF32, {3, 2, 4}}, table{floats, DType::kF32, {3, 2, 2}};
  Tensor frequencies{floats, DType::kF32, {2}}, ids{ints, DType::kI32, {3}};
  FakeWeight w{8, 8, 100}, other{8, 8, 30};
  KvCache cache{{KvLayout::uniform(2, 4, DType::kF32), 16}, 1, nullptr};
  KvIndex index{ids, {ints, DType::kI32, {2}}, ids, {ints, DType::kI32, {1, 1}}};
};

TEST(Ops, EveryOpIsTimedOnceAndUnderItsOwnName) {
  FakeBackend b;
  Operands o;
  b.time_ops(true);
  b.embed(o.x, o.w, o.ids);
  b.matmul(o.x, o.x, o.w);
  b.rms_norm(o.x, o.x, o.row, 1);
  b.layer_norm(o.x, o.x, o.row, {}, 1);
  b.rope_table(o.table, o.ids, o.frequencies, 1);
  b.rope(o.heads, o.table);
  b.store_kv(o.heads, o.heads, o.cache, o.index);
  b.attention(o.heads, o.heads, o.cache, o.index, {});
  b.add(o.x, o.x, o.x);
  b.activate(o.x, Activation::kSilu);
  b.glu(o.x, o.x, o.x, Activation::kSilu);
  b.softcap(o.x, 1);
  b.gather_rows(o.x, o.x, o.ids);
  // Composed of those above, which must not be seen a second time.
  b.add_rms_norm(o.x, o.x, o.x, o.row, 1);
  b.gather_rms_norm(o.x, o.x, o.ids, o.row, 1);
  MatmulPart parts[] = {{o.x, &o.w}, {o.x, &o.w}};
  b.matmul_group(parts, o.x);
  b.matmul_glu(o.x, o.x, o.x, {}, o.w, {}, o.w, {}, Activation::kSilu);
  b.matmul_add(o.x, o.x, o.x, o.w);
  b.rope_store_kv(o.heads, o.heads, o.heads, {}, o.table, o.cache, o.index);
  b.attend(o.heads, o.heads, o.heads, o.heads, {}, o.table, o.cache, o.index, {});
  b.draw(nullptr, o.ids, nullptr, o.x, true);
  std::set<std::string> names;
  for (const OpTime& t : b.take_op_times()) {
    EXPECT_EQ(t.calls, 1) << t.op;
    names.insert(t.op);
  }
  EXPECT_EQ(names.size(), 21u);
  for (const char* name : {"attend", "rope_store_kv", "draw"}) EXPECT_TRUE(names.contains(name));
  b.time_ops(false);
  b.add(o.x, o.x, o.x);
  EXPECT_TRUE(b.take_op_times().empty());
}

// 3 rows by 8 x 8: 384 FLOPs.
TEST(Ops, ProductsCountTheirWorkOnce) {
  FakeBackend b;
  Operands o;
  auto work = [&] {
    Work w = b.take_work();
    return std::pair(w.flops, w.weight_bytes);
  };
  b.matmul(o.x, o.x, o.w);
  EXPECT_EQ(work(), std::pair(384.0, std::int64_t{100}));
  MatmulPart parts[] = {{o.x, &o.w}, {o.x, &o.other}};
  b.matmul_group(parts, o.x);
  EXPECT_EQ(work(), std::pair(768.0, std::int64_t{130}));
  b.matmul_glu(o.x, o.x, o.x, {}, o.w, {}, o.other, {}, Activation::kSilu);
  EXPECT_EQ(work(), std::pair(768.0, std::int64_t{130}));
  b.matmul_add(o.x, o.x, o.x, o.other);
  b.add(o.x, o.x, o.x);
  EXPECT_EQ(work(), std::pair(384.0, std::int64_t{30}));
  EXPECT_EQ(work(), std::pair(0.0, std::int64_t{0}));
}

TEST(Backend, ReplayedCallsCountTheirWork) {
  FakeBackend b;
  Operands o;
  auto one = [&] { b.matmul(o.x, o.x, o.w); };
  auto two = [&] { b.matmul(o.x, o.x, o.other), b.matmul(o.x, o.x, o.other); };
  for (int time = 0; time < 4; ++time) {
    b.repeat(1, one);
    EXPECT_EQ(b.take_work().weight_bytes, 100) << time;
    b.repeat(2, two);
    Work work = b.take_work();
    EXPECT_EQ(work.weight_bytes, 60) << time;
    EXPECT_EQ(work.flops, 768) << time;
  }
  EXPECT_EQ(b.called[1], 2);  // or nothing was replayed
  // Work from before the replay stays.
  b.matmul(o.x, o.x, o.other);
  b.repeat(1, one);
  EXPECT_EQ(b.take_work().weight_bytes, 130);
}

TEST(Backend, ADeviceThatDoesNotExistIsRefused) {
  for (const char* name : {"ref", "cpu"})
    for (int device : {-1, 1}) {
      auto backend = create_backend(name, {.device = device});
      ASSERT_FALSE(backend.ok()) << name;
      EXPECT_EQ(backend.error().code, ErrorCode::kInvalid);
      EXPECT_THAT(backend.error().message, HasSubstr(fmt::format("device: found {}", device)));
      EXPECT_THAT(backend.error().message, HasSubstr(fmt::format("{} allows only 0", name)));
    }
  Status status = check_device("cuda", {.device = 4}, 4);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "device: found 4, cuda allows 0 to 3");
  EXPECT_TRUE(check_device("cuda", {.device = 3}, 4).ok());
}

TEST(CountingDevice, HasTheSizesOfTheDeviceItStandsForAndNoMemory) {
  auto cpu = make_backend("cpu");
  CountingDevice counting(*cpu);
  Arena arena;
  KvShape shape{KvLayout::uniform(2, 24, DType::kF16), 16};
  EXPECT_EQ(counting.kv_page_bytes(shape), cpu->kv_page_bytes(shape));
  EXPECT_EQ(counting.head_rows(), cpu->head_rows());
  for (const Format& format : all_formats()) {
    MatrixSource m = arena.matrix(format, 64, 256);
    EXPECT_EQ(counting.packed_bytes(m.dtype, 64, 256, WeightUse::kMatmul),
              cpu->packed_bytes(m.dtype, 64, 256, WeightUse::kMatmul));
    auto weight = counting.pack(m, WeightUse::kMatmul);
    ASSERT_TRUE(weight.ok());
    EXPECT_EQ((*weight)->rows(), 64);
    EXPECT_EQ((*weight)->cols(), 256);
    EXPECT_EQ((*weight)->bytes(), format_bytes(format.info, 64 * 256)) << format.info.name;
  }
  // More than any machine has.
  auto buffer = counting.allocate(std::int64_t{1} << 60);
  ASSERT_TRUE(buffer.ok());
  EXPECT_EQ(buffer->bytes(), std::int64_t{1} << 60);
  EXPECT_NE(buffer->data(), nullptr);
}

}  // namespace
}  // namespace vitrine::testing
