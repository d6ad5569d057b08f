// What Backend, Ops and Device do around every backend's own code: clocks, work, replay, devices.
#include "kernels/backend.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "kernels/counting.h"
#include "kernels/ref/backend.h"
#include "kernels/testing.h"

namespace vitrine::testing {
namespace {

using ::testing::HasSubstr;

// Calls a key's ops twice and replays them from then on, as cuda does; draws nothing.
class ReplayingBackend final : public ref::RefBackend {
 public:
  std::map<std::uint64_t, int> called;  // by key

 protected:
  void repeat_(std::uint64_t key, const std::function<void()>& calls) override {
    if (called[key] < 2) ++called[key], calls();
  }
  void draw_(DrawnRow*, Tensor, const DrawRow*, Tensor, bool) override {}
};

// What the ops take: three rows of one sequence, E = F = 8, two heads of four, matrices of f32.
struct Operands {
  explicit Operands(Backend& b) : w(pack(b, 8)), wide(pack(b, 16)) {
    memory = std::move(b.allocate(b.kv_page_bytes(cache.shape))).value();
    cache.data = static_cast<std::byte*>(memory.data());
  }
  std::unique_ptr<Weight> pack(Backend& b, int rows) {
    return b.pack(arena.matrix(*find_format(DType::kF32), rows, 8), WeightUse::kMatmul).value();
  }

  Arena arena;
  std::unique_ptr<Weight> w, wide;  // 8 x 8, 16 x 8
  Tensor x = arena.random({3, 8}), y = arena.f32({3, 8}), z = arena.f32({3, 8});
  Tensor wide_y = arena.f32({3, 16}), row = arena.random({8}), ids = arena.i32({0, 1, 2});
  Tensor q = arena.random({3, 2, 4}), k = arena.random({3, 2, 4}), v = arena.random({3, 2, 4});
  Tensor heads = arena.f32({3, 2, 4}), table = arena.f32({3, 2, 2}), frequencies = arena.f32({2});
  Buffer memory;
  KvCache cache{{KvLayout::uniform(2, 4, DType::kF32), 16}, 1, nullptr};
  KvIndex index{ids, arena.i32({0, 3}), ids, arena.i32({0}).view({1, 1})};
};

TEST(Ops, EveryOpIsTimedOnceAndUnderItsOwnName) {
  ReplayingBackend b;
  Operands o(b);
  b.time_ops(true);
  b.embed(o.y, *o.w, o.ids);
  b.matmul(o.y, o.x, *o.w);
  b.rms_norm(o.y, o.x, o.row, 1);
  b.layer_norm(o.y, o.x, o.row, {}, 1);
  b.rope_table(o.table, o.ids, o.frequencies, 1);
  b.rope(o.q, o.table);
  b.store_kv(o.k, o.v, o.cache, o.index);
  b.attention(o.heads, o.q, o.cache, o.index, {});
  b.add(o.y, o.x, o.x);
  b.activate(o.y, Activation::kSilu);
  b.glu(o.y, o.x, o.x, Activation::kSilu);
  b.softcap(o.y, 1);
  b.gather_rows(o.y, o.x, o.ids);
  // Composed of those above, which must not be seen a second time.
  b.add_rms_norm(o.y, o.x, o.z, o.row, 1);
  b.gather_rms_norm(o.y, o.x, o.ids, o.row, 1);
  MatmulPart parts[] = {{o.y, o.w.get()}, {o.z, o.w.get()}};
  b.matmul_group(parts, o.x);
  b.matmul_glu(o.y, o.z, o.x, {}, *o.w, {}, *o.w, {}, Activation::kSilu);
  b.matmul_add(o.y, o.z, o.x, *o.w);
  b.rope_store_kv(o.q, o.k, o.v, {}, o.table, o.cache, o.index);
  b.attend(o.heads, o.q, o.k, o.v, {}, o.table, o.cache, o.index, {});
  b.draw(nullptr, o.ids, nullptr, o.x, true);
  std::set<std::string> names;
  for (const OpTime& t : b.take_op_times()) {
    EXPECT_EQ(t.calls, 1) << t.op;
    names.insert(t.op);
  }
  EXPECT_EQ(names.size(), 21u);
  for (const char* name : {"attend", "rope_store_kv", "draw"}) EXPECT_TRUE(names.contains(name));
  b.time_ops(false);
  b.add(o.y, o.x, o.x);
  EXPECT_TRUE(b.take_op_times().empty());
}

// Three rows by 8 x 8: 384 FLOPs and 256 bytes; by 16 x 8: twice that.
TEST(Ops, ProductsCountTheirWorkOnce) {
  ReplayingBackend b;
  Operands o(b);
  auto work = [&] {
    Work w = b.take_work();
    return std::pair(w.flops, w.weight_bytes);
  };
  b.matmul(o.y, o.x, *o.w);
  EXPECT_EQ(work(), std::pair(384.0, std::int64_t{256}));
  MatmulPart parts[] = {{o.y, o.w.get()}, {o.wide_y, o.wide.get()}};
  b.matmul_group(parts, o.x);
  EXPECT_EQ(work(), std::pair(1152.0, std::int64_t{768}));
  b.matmul_glu(o.y, o.z, o.x, {}, *o.w, {}, *o.w, {}, Activation::kSilu);
  EXPECT_EQ(work(), std::pair(768.0, std::int64_t{512}));
  b.matmul_add(o.y, o.z, o.x, *o.w);
  b.add(o.y, o.x, o.x);
  EXPECT_EQ(work(), std::pair(384.0, std::int64_t{256}));
  EXPECT_EQ(work(), std::pair(0.0, std::int64_t{0}));
}

TEST(Backend, ReplayedCallsCountTheirWork) {
  ReplayingBackend b;
  Operands o(b);
  auto one = [&] { b.matmul(o.y, o.x, *o.w); };
  auto two = [&] { b.matmul(o.y, o.x, *o.w), b.matmul(o.wide_y, o.x, *o.wide); };
  for (int time = 0; time < 4; ++time) {
    b.repeat(1, one);
    EXPECT_EQ(b.take_work().weight_bytes, 256) << time;
    b.repeat(2, two);
    Work work = b.take_work();
    EXPECT_EQ(work.weight_bytes, 768) << time;
    EXPECT_EQ(work.flops, 1152) << time;
  }
  EXPECT_EQ(b.called[1], 2);  // or nothing was replayed
  // Work from before the replay stays.
  b.matmul(o.wide_y, o.x, *o.wide);
  b.repeat(1, one);
  EXPECT_EQ(b.take_work().weight_bytes, 768);
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
    const std::int64_t K = whole_blocks(format, 256);
    MatrixSource m = arena.matrix(format, 64, K);
    EXPECT_EQ(counting.packed_bytes(m.dtype, 64, K, WeightUse::kMatmul),
              cpu->packed_bytes(m.dtype, 64, K, WeightUse::kMatmul));
    auto weight = counting.pack(m, WeightUse::kMatmul);
    ASSERT_TRUE(weight.ok());
    EXPECT_EQ((*weight)->rows(), 64);
    EXPECT_EQ((*weight)->cols(), K);
    EXPECT_EQ((*weight)->bytes(), format_bytes(format.info, 64 * K)) << format.info.name;
  }
  // More than any machine has.
  auto buffer = counting.allocate(std::int64_t{1} << 60);
  ASSERT_TRUE(buffer.ok());
  EXPECT_EQ(buffer->bytes(), std::int64_t{1} << 60);
  EXPECT_NE(buffer->data(), nullptr);
}

}  // namespace
}  // namespace vitrine::testing
