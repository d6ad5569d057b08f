// K and V of different widths and types: ref stores any, the others say what they do not.
#include <gmock/gmock.h>

#include "kernels/testing.h"

namespace vitrine::testing {
namespace {

using ::testing::HasSubstr;

DType type_of(const char* format) { return find_format(format)->info.dtype; }

std::string refusal(const Backend& b, const KvLayout& layout) {
  Status status = b.check_kv(layout);
  return status.ok() ? "" : status.error().message;
}

TEST(KvLayout, BackendsSayWhatTheyCannotStore) {
  const DType q8 = type_of("q8_0"), f16 = DType::kF16;
  auto ref = make_backend("ref");
  EXPECT_EQ(refusal(*ref, {2, {64, q8}, {48, f16}}), "");
  EXPECT_THAT(refusal(*ref, {2, {48, q8}, {48, f16}}),
              HasSubstr("K of a head has 48 values of type q8_0"));
  EXPECT_THAT(refusal(*ref, {2, {48, f16}, {48, DType::kI64}}), HasSubstr("V of a head"));
  for (const Candidate& c : candidates()) {
    for (DType type : {DType::kF32, f16, DType::kBF16})
      EXPECT_EQ(refusal(*c.backend, KvLayout::uniform(2, 80, type)), "") << c.label;
    EXPECT_THAT(refusal(*c.backend, {2, {64, f16}, {64, DType::kBF16}}),
                HasSubstr("K of a head has 64 values of type f16, V 64 values of type bf16"));
    EXPECT_THAT(refusal(*c.backend, {2, {64, f16}, {32, f16}}), HasSubstr("of one width"));
    EXPECT_THAT(refusal(*c.backend, KvLayout::uniform(2, 64, q8)), HasSubstr("f32, f16 or bf16"));
    EXPECT_THAT(refusal(*c.backend, KvLayout::uniform(2, 1040, f16)), HasSubstr("1040"));
  }
}

TEST(KvLayout, APositionCostsWhatItsFormatsSay) {
  EXPECT_EQ(kv_row_bytes({64, DType::kF32}), 256);
  EXPECT_EQ(kv_row_bytes({64, DType::kBF16}), 128);
  EXPECT_EQ(kv_row_bytes({64, type_of("q8_0")}), 64 + 2 * 2);  // a scale per 32
  auto ref = make_backend("ref");
  EXPECT_EQ(ref->kv_page_bytes({{3, {64, type_of("q8_0")}, {32, DType::kF16}}, 16}),
            3 * 16 * (68 + 64));
}

// What a format makes of rows of `width`, as f32 rows of `to` with zeros behind.
Tensor through_format(Arena& arena, const Tensor& x, const KvPart& part, std::int64_t to) {
  const Format& format = *find_format(part.type);
  std::vector<std::byte> bytes(static_cast<std::size_t>(kv_row_bytes(part)));
  const std::int64_t rows = x.shape.elements() / part.width,
                     blocks = part.width / format.info.block;
  Tensor out = arena.f32({x.dim(0), x.dim(1), to});
  for (std::int64_t r = 0; r < rows; ++r) {
    format.encode(x.f32() + r * part.width, blocks, bytes.data());
    format.decode(bytes.data(), blocks, out.f32() + r * to);
  }
  return out;
}

// Attention over mixed pages is, to the bit, attention over f32 pages that hold what the formats
// make of K and V, the narrower of the two padded with zeros.
TEST(KvLayout, RefStoresKAndVApart) {
  const std::int64_t T = 40, H = 4, K = 2, P = 16, B = 3;
  auto ref = make_backend("ref");
  for (auto [k_part, v_part] :
       std::vector<std::pair<KvPart, KvPart>>{{{64, DType::kF16}, {32, DType::kF16}},
                                              {{32, DType::kF32}, {96, DType::kBF16}},
                                              {{64, type_of("q8_0")}, {48, DType::kF16}},
                                              {{48, DType::kBF16}, {64, type_of("q4_0")}}}) {
    Arena arena;
    const std::int64_t D = k_part.width, Dv = v_part.width, wide = std::max(D, Dv);
    Tensor k = arena.random({T, K, D}), v = arena.random({T, K, Dv}), q = arena.random({T, H, D});
    Tensor table = arena.i32({2, 0, 3});
    std::vector<std::int32_t> positions, slots;
    for (std::int32_t t = 0; t < T; ++t) {
      positions.push_back(t);
      slots.push_back(static_cast<std::int32_t>(table.i32()[t / P] * P + t % P));
    }
    KvIndex index{arena.i32(positions), arena.i32({0, static_cast<std::int32_t>(T)}),
                  arena.i32(slots), table.view({1, B})};
    auto attend = [&](const KvLayout& layout, Tensor queries, Tensor keys, Tensor values) {
      KvShape shape{layout, static_cast<int>(P)};
      Buffer memory = std::move(ref->allocate(ref->kv_page_bytes(shape) * 4)).value();
      std::memset(memory.data(), 0xFF, static_cast<std::size_t>(memory.bytes()));
      KvCache cache{shape, 4, static_cast<std::byte*>(memory.data())};
      Tensor out = arena.f32({T, H, layout.v.width}, NAN);
      ref->attend(out, queries, keys, values, {}, {}, cache, index, {0.3f, 24, 0});
      return out;
    };
    Tensor found = attend({static_cast<int>(K), k_part, v_part}, q, k, v);
    Tensor expected =
        attend(KvLayout::uniform(static_cast<int>(K), static_cast<int>(wide), DType::kF32),
               through_format(arena, q, {k_part.width, DType::kF32}, wide),
               through_format(arena, k, k_part, wide), through_format(arena, v, v_part, wide));
    for (std::int64_t row = 0; row < T * H; ++row)
      ASSERT_EQ(0, std::memcmp(found.f32() + row * Dv, expected.f32() + row * wide,
                               static_cast<std::size_t>(Dv) * 4))
          << D << " " << Dv << " row " << row;
  }
}

}  // namespace
}  // namespace vitrine::testing
