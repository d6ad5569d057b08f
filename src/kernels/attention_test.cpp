#include "kernels/testing.h"

namespace vitrine::testing {
namespace {

struct Setting {
  int heads, kv_heads, head_dim, page_size, window;
  float softcap;
  DType dtype;
};

// Three sequences with different histories; the step appends a ragged set of rows to each.
struct Scene {
  Setting s;
  Arena arena{3};
  std::vector<int> history{0, 37, 90}, rows{40, 1, 23};
  Tensor k, v, q;          // of every position of every sequence: (sum of lengths, ...)
  std::vector<int> start;  // of a sequence in k, v, q
  std::vector<std::vector<std::int32_t>> pages;
  int page_count = 0;

  explicit Scene(const Setting& setting) : s(setting) {
    int total = 0;
    for (std::size_t i = 0; i < rows.size(); ++i)
      start.push_back(total), total += history[i] + rows[i];
    k = arena.random({total, s.kv_heads, s.head_dim});
    v = arena.random({total, s.kv_heads, s.head_dim});
    q = arena.random({total, s.heads, s.head_dim});
    // Pages are handed out in a scattered order.
    std::vector<std::int32_t> order;
    for (int i = 0; i < 40; ++i) order.push_back((i * 7) % 41);
    page_count = 41;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      pages.emplace_back();
      for (int p = 0; p * s.page_size < history[i] + rows[i]; ++p) {
        pages.back().push_back(order.back());
        order.pop_back();
      }
    }
  }

  // Runs positions [from, from + n) of the sequences `who` as one step.
  Tensor step(Backend& b, const KvCache& cache, const std::vector<int>& who,
              const std::vector<int>& from, const std::vector<int>& n) {
    std::vector<std::int32_t> positions, offsets{0}, slots, table;
    const int B = 12;
    int T = 0;
    for (std::size_t i = 0; i < who.size(); ++i) {
      for (int p = from[i]; p < from[i] + n[i]; ++p) {
        positions.push_back(p);
        slots.push_back(pages[who[i]][p / s.page_size] * s.page_size + p % s.page_size);
      }
      offsets.push_back(T += n[i]);
      std::vector<std::int32_t> row(B, -1);
      std::copy(pages[who[i]].begin(), pages[who[i]].end(), row.begin());
      table.insert(table.end(), row.begin(), row.end());
    }
    Tensor ks = arena.f32({T, s.kv_heads, s.head_dim}), vs = arena.f32({T, s.kv_heads, s.head_dim});
    Tensor qs = arena.f32({T, s.heads, s.head_dim}), out = arena.f32({T, s.heads, s.head_dim}, NAN);
    int row = 0;
    for (std::size_t i = 0; i < who.size(); ++i)
      for (int p = from[i]; p < from[i] + n[i]; ++p, ++row) {
        int at = start[who[i]] + p;
        std::memcpy(ks.rows(row, 1).data, k.rows(at, 1).data, 4u * s.kv_heads * s.head_dim);
        std::memcpy(vs.rows(row, 1).data, v.rows(at, 1).data, 4u * s.kv_heads * s.head_dim);
        std::memcpy(qs.rows(row, 1).data, q.rows(at, 1).data, 4u * s.heads * s.head_dim);
      }
    Tensor block_table = arena.i32(table);
    KvIndex index{arena.i32(positions), arena.i32(offsets), arena.i32(slots),
                  block_table.view({static_cast<std::int64_t>(who.size()), B})};
    b.store_kv(ks, vs, cache, index);
    b.attention(out, qs, cache, index, {0.3f, s.window, s.softcap});
    return out;
  }

  // Memory full of NaN, so that reading a position nobody wrote shows. Padding stays zero.
  KvCache cache(Backend& b, Buffer& buffer) {
    KvShape shape{KvLayout::uniform(s.kv_heads, s.head_dim, s.dtype), s.page_size};
    std::int64_t bytes = b.kv_page_bytes(shape) * page_count;
    buffer = std::move(b.allocate(bytes)).value();
    std::vector<std::byte> nan(static_cast<std::size_t>(bytes), std::byte{0xFF});
    if (s.head_dim % 16 == 0) b.write(buffer.data(), nan.data(), bytes);
    return {shape, page_count, static_cast<std::byte*>(buffer.data())};
  }
};

std::vector<Setting> settings() {
  std::vector<Setting> out;
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    out.push_back({4, 2, 16, 16, 0, 0, dtype});
    out.push_back({8, 8, 64, 32, 0, 0, dtype});
    out.push_back({12, 1, 32, 16, 24, 0, dtype});
    out.push_back({4, 2, 8, 16, 0, 0, dtype});
    out.push_back({6, 2, 80, 32, 10, 20.0f, dtype});
  }
  return out;
}

TEST(Attention, AgreesWithRefOverRaggedBatches) {
  auto ref = make_backend("ref");
  for (const Candidate& c : candidates())
    for (const Setting& s : settings()) {
      Scene scene(s);
      Buffer b1, b2;
      KvCache expected_cache = scene.cache(*ref, b1), found_cache = scene.cache(*c.backend, b2);
      std::vector<int> all{0, 1, 2}, zero{0, 0, 0};
      // Histories first (a sequence without one is left out), then the ragged step.
      scene.step(*ref, expected_cache, {1, 2}, {0, 0}, {37, 90});
      scene.step(*c.backend, found_cache, {1, 2}, {0, 0}, {37, 90});
      Tensor expected = scene.step(*ref, expected_cache, all, scene.history, scene.rows);
      Tensor found = scene.step(*c.backend, found_cache, all, scene.history, scene.rows);
      // Tensor cores take queries and weights in the pages' type: 11 bits, or 8.
      float allowed = !is_cuda(c) ? 2e-5f : s.dtype == DType::kBF16 ? 4e-2f : 5e-3f;
      EXPECT_LE(max_difference(expected, found), allowed)
          << c.label << " heads " << s.heads << " dim " << s.head_dim << " type "
          << static_cast<int>(s.dtype);
      // A token and guesses for the next ones; of one sequence, and of several.
      const std::vector<std::vector<int>> who{{2}, {2}, {2, 0}, {1, 0, 2}},
          from{{108}, {96}, {104, 31}, {37, 20, 96}}, n{{5}, {17}, {9, 2}, {1, 5, 17}};
      for (std::size_t i = 0; i < who.size(); ++i) {
        expected = scene.step(*ref, expected_cache, who[i], from[i], n[i]);
        found = scene.step(*c.backend, found_cache, who[i], from[i], n[i]);
        EXPECT_LE(max_difference(expected, found), allowed)
            << c.label << " heads " << s.heads << " dim " << s.head_dim << " type "
            << static_cast<int>(s.dtype) << ", guesses " << i;
      }
    }
}

// Chunks, other rows and threads do not change a row's bits.
TEST(Attention, ARowHasTheSameBitsInEveryBatch) {
  for (const auto& [isa, one, many] : exact_pairs())
    for (const Setting& s : settings()) {
      Scene scene(s);
      Buffer b1, b2, b3;
      KvCache c1 = scene.cache(*one, b1), c2 = scene.cache(*many, b2), c3 = scene.cache(*one, b3);
      Tensor whole = scene.step(*many, c2, {2, 0}, {0, 0}, {113, 40});
      Tensor chunk = scene.step(*one, c1, {2}, {0}, {7});
      EXPECT_TRUE(same_bits(whole.rows(0, 7), chunk));
      chunk = scene.step(*one, c1, {2}, {7}, {106});
      EXPECT_TRUE(same_bits(whole.rows(7, 106), chunk)) << isa << " dim " << s.head_dim;
      for (int p = 0; p < 113; ++p) {
        Tensor single = scene.step(*one, c3, {2}, {p}, {1});
        ASSERT_TRUE(same_bits(whole.rows(p, 1), single)) << isa << " position " << p;
      }
    }
}

// Norms, rotation and storing in one op give what the single ops give.
TEST(Attention, RopeAndStoreAgreeWithRef) {
  auto ref = make_backend("ref");
  for (const Candidate& c : candidates())
    for (DType dtype : {DType::kF32, DType::kF16})
      for (int mode = 0; mode < 4; ++mode) {
        bool norm = mode & 1, turn = mode & 2;
        Arena arena;
        KvShape shape{KvLayout::uniform(2, 48, dtype), 16};
        Tensor positions = arena.i32({0, 1, 2, 3, 4}), offsets = arena.i32({0, 5}),
               slots = arena.i32({16, 17, 18, 19, 20}), table = arena.i32({1, -1});
        KvIndex index{positions, offsets, slots, table.view({1, 2})};
        Tensor freq = arena.f32({20}, 0.3f), turns = arena.f32({5, 20, 2});
        ref->rope_table(turns, positions, freq, 1);
        HeadNorms norms;
        if (norm) norms = {arena.random({48}), arena.random({48}), 1e-5f};
        Tensor out[2];
        Arena values(7);
        Tensor first_q = values.random({5, 4, 48}), k = values.random({5, 2, 48}),
               v = values.random({5, 2, 48});
        for (int i = 0; i < 2; ++i) {
          Backend& b = i == 0 ? *ref : *c.backend;
          auto memory = b.allocate(b.kv_page_bytes(shape) * 3);
          KvCache cache{shape, 3, static_cast<std::byte*>(memory->data())};
          Tensor q = arena.f32({5, 4, 48}), kk = arena.f32({5, 2, 48});
          std::copy_n(first_q.f32(), 5 * 4 * 48, q.f32());
          std::copy_n(k.f32(), 5 * 2 * 48, kk.f32());
          b.rope_store_kv(q, kk, v, norms, turn ? turns : Tensor{}, cache, index);
          out[i] = arena.f32({5, 4, 48});
          b.attention(out[i], q, cache, index, {0.2f, 0, 0});
        }
        EXPECT_LE(max_difference(out[0], out[1]), is_cuda(c) ? 1e-2f : 2e-3f)
            << c.label << " mode " << mode;
      }
}

// A row never meets the values of positions that it does not see, whatever they are.
TEST(Attention, ABadValueStaysWhereItIsSeen) {
  for (const Candidate& c : candidates()) {
    Scene scene({4, 2, 16, 16, 6, 0, DType::kF32});
    for (int d = 0; d < 2 * 16; ++d) scene.v.f32()[20 * 2 * 16 + d] = d % 2 ? INFINITY : NAN;
    Buffer buffer;
    KvCache cache = scene.cache(*c.backend, buffer);
    Tensor out = scene.step(*c.backend, cache, {0}, {0}, {40});
    for (int t = 0; t < 40; ++t) {
      bool finite = true;
      for (int i = 0; i < 4 * 16; ++i) finite = finite && std::isfinite(out.f32()[t * 4 * 16 + i]);
      EXPECT_EQ(finite, t < 20 || t >= 26) << c.label << " row " << t;
    }
  }
}

}  // namespace
}  // namespace vitrine::testing
