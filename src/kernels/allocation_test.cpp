// No op of cpu and cuda allocates on the host: what they need was allocated when the backend was
// created or when a weight was packed. (cuda: after the first call with tensors of that shape.)
#include <functional>
#include <thread>

#include "kernels/testing.h"
#include "support/allocation_count.h"

namespace vitrine::testing {
namespace {

struct Call {
  const char* op;
  std::function<void()> run;
};

void expect_no_allocations(const Candidate& c, const std::string& what,
                           const std::vector<Call>& calls) {
  for (const Call& call : calls) {
    if (is_cuda(c)) call.run();
    const std::size_t before = allocation_count();
    call.run();
    EXPECT_EQ(allocation_count() - before, 0u) << c.label << " " << call.op << ", " << what;
  }
}

std::vector<Candidate> all_candidates() {
  std::vector<Candidate> out = candidates();
  for (Candidate& c : queueing_candidates()) out.push_back(std::move(c));
  return out;
}

TEST(Allocation, IsCountedOnEveryThread) {
  const std::size_t before = allocation_count();
  std::thread([] { std::vector<int> memory(100); }).join();
  EXPECT_GE(allocation_count() - before, 2u);  // the thread's state and the memory
}

TEST(Allocation, NoneByProducts) {
  constexpr std::int64_t N = 96;
  for (const Candidate& c : all_candidates())
    for (const Format& format : all_formats()) {
      Backend& b = *c.backend;
      const std::int64_t K = whole_blocks(format, 512);
      Arena arena;
      auto pack = [&](WeightUse use) {
        return std::move(b.pack(arena.matrix(format, N, K), use)).value();
      };
      auto w = pack(WeightUse::kMatmul), w2 = pack(WeightUse::kMatmul),
           head = pack(WeightUse::kHead), table = pack(WeightUse::kTable);
      Tensor bias = arena.random({N}), norm_w = arena.random({K});
      for (std::int64_t T : {1, 5, 64}) {
        Tensor x = arena.random({T, K}), out = arena.f32({T, N}), out2 = arena.f32({T, N}),
               scratch = arena.f32({T, K}), ids = arena.i32(std::vector<std::int32_t>(T, 3));
        InputNorm norm{norm_w, 1e-5f, scratch};
        MatmulPart parts[] = {{out, w.get(), bias}, {out2, w2.get()}};
        expect_no_allocations(
            c, format.info.name + std::string(", rows: ") + std::to_string(T),
            {{"matmul", [&] { b.matmul(out, x, *w, bias); }},
             {"matmul of a head", [&] { b.matmul(out, x, *head); }},
             {"matmul_group", [&] { b.matmul_group(parts, x, norm); }},
             {"matmul_glu",
              [&] { b.matmul_glu(out, out2, x, norm, *w, bias, *w2, {}, Activation::kSilu); }},
             {"matmul_add", [&] { b.matmul_add(out, out2, x, *w); }},
             {"embed", [&] { b.embed(scratch, *table, ids, 2); }}});
      }
    }
}

TEST(Allocation, NoneByAttention) {
  constexpr std::int64_t H = 8, K = 2, D = 64, P = 16;
  for (const Candidate& c : all_candidates())
    for (DType type : {DType::kF32, DType::kF16, DType::kBF16})
      for (std::int32_t T : {1, 5, 64}) {
        Backend& b = *c.backend;
        Arena arena;
        KvShape shape{KvLayout::uniform(K, D, type), P};
        Buffer memory = std::move(b.allocate(b.kv_page_bytes(shape) * 6)).value();
        KvCache cache{shape, 6, static_cast<std::byte*>(memory.data())};
        std::vector<std::int32_t> rows(T);
        for (std::int32_t t = 0; t < T; ++t) rows[t] = t;
        Tensor positions = arena.i32(rows), table = arena.i32({0, 1, 2, 3});
        KvIndex index{positions, arena.i32({0, T}), positions, table.view({1, 4})};
        Tensor q = arena.random({T, H, D}), k = arena.random({T, K, D}),
               v = arena.random({T, K, D}), out = arena.f32({T, H, D}),
               turns = arena.f32({T, D / 2, 2}), freq = arena.f32({D / 2}, 0.3f);
        HeadNorms norms{arena.random({D}), arena.random({D}), 1e-5f};
        AttentionParams params{0.1f, 0, 0};
        expect_no_allocations(
            c, "rows: " + std::to_string(T),
            {{"rope_table", [&] { b.rope_table(turns, positions, freq, 1); }},
             {"rope", [&] { b.rope(q, turns); }},
             {"store_kv", [&] { b.store_kv(k, v, cache, index); }},
             {"attention", [&] { b.attention(out, q, cache, index, params); }},
             {"rope_store_kv", [&] { b.rope_store_kv(q, k, v, norms, turns, cache, index); }},
             {"attend", [&] { b.attend(out, q, k, v, norms, turns, cache, index, params); }},
             {"copy_kv_page", [&] { b.copy_kv_page(cache, 0, 5); }}});
      }
}

TEST(Allocation, NoneByOtherOps) {
  constexpr std::int64_t E = 1024;
  for (const Candidate& c : all_candidates())
    for (std::int64_t T : {1, 5, 64}) {
      Backend& b = *c.backend;
      Arena arena;
      Tensor x = arena.random({T, E}), y = arena.random({T, E}), out = arena.f32({T, E}),
             w = arena.random({E}), rows = arena.i32(std::vector<std::int32_t>(T, 0)),
             last = arena.i32(std::vector<std::int32_t>(T, 0));
      std::vector<float> host(E);
      Buffer draws = shared_memory(T * static_cast<std::int64_t>(sizeof(DrawRow))),
             drawn = shared_memory(T * static_cast<std::int64_t>(sizeof(DrawnRow)));
      auto* draw = static_cast<DrawRow*>(draws.data());
      for (std::int32_t t = 0; t < T; ++t)
        draw[t] = DrawRow{.key = {.seed = 7}, .top_k = 4, .slot = t};
      std::vector<Call> calls{
          {"rms_norm", [&] { b.rms_norm(out, x, w, 1e-5f); }},
          {"layer_norm", [&] { b.layer_norm(out, x, w, w, 1e-5f); }},
          {"add_rms_norm", [&] { b.add_rms_norm(out, x, y, w, 1e-5f); }},
          {"gather_rms_norm", [&] { b.gather_rms_norm(out, x, rows, w, 1e-5f); }},
          {"gather_rows", [&] { b.gather_rows(out, x, rows); }},
          {"add", [&] { b.add(out, x, y); }},
          {"activate", [&] { b.activate(out, Activation::kGelu); }},
          {"glu", [&] { b.glu(out, x, y, Activation::kSilu); }},
          {"softcap", [&] { b.softcap(out, 30); }},
          {"write", [&] { b.write(out.data, host.data(), E * 4); }},
          {"read", [&] { b.read(out.data, E * 4, host.data()); }},
          {"a step", [&] { b.begin_step(1, false), b.wait(b.end_step()); }}};
      if (b.asynchronous())
        calls.push_back(
            {"draw", [&] { b.draw(static_cast<DrawnRow*>(drawn.data()), last, draw, x, false); }});
      expect_no_allocations(c, "rows: " + std::to_string(T), calls);
    }
}

}  // namespace
}  // namespace vitrine::testing
