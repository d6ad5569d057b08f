#include <thread>

#include "kernels/testing.h"

namespace vitrine::testing {
namespace {

struct Case {
  std::int64_t M, N, K;
};

std::vector<Case> cases_for(const Format& f) {
  const FormatInfo& format = f.info;
  std::vector<Case> cases{{1, 33, 256},  {2, 32, 512},   {3, 100, 256}, {5, 31, 256},
                          {17, 64, 768}, {300, 40, 256}, {530, 40, 512}};
  if (format.block <= 32) cases.push_back({4, 96, 160}), cases.push_back({33, 1, 32});
  if (format.block == 1)
    cases.push_back({1, 7, 1}), cases.push_back({9, 50, 173}), cases.push_back({2, 64, 31});
  for (Case& c : cases) c.K = whole_blocks(f, c.K);
  return cases;
}

// bf16 activations lose up to 2^-9 of each, int8 activations 1/254 of the largest of 32; the other
// arithmetics keep about the accuracy of fp32.
float tolerance(const std::string& label, const FormatInfo& format) {
  bool amx = label.rfind("amx", 0) == 0, vdp = label.rfind("bf16", 0) == 0;
  if (label.rfind("cuda", 0) == 0) return 0.01f;
  bool exact = label.rfind("ref", 0) == 0;
  if (format.quantized && format.block > 1) return exact ? 1e-5f : 0.015f;
  return (amx || vdp) && format.dtype == DType::kBF16 ? 0.01f : 1e-5f;
}

TEST(Matmul, AgreesWithRef) {
  auto ref = make_backend("ref");
  for (const Candidate& c : candidates())
    for (const Format& format : all_formats())
      for (const Case& s : cases_for(format)) {
        Arena arena;
        MatrixSource m = arena.matrix(format, s.N, s.K);
        Tensor x = arena.random({s.M, s.K}), bias = arena.random({s.N});
        Tensor expected = arena.f32({s.M, s.N}), found = arena.f32({s.M, s.N}, NAN);
        auto reference = ref->pack(m, WeightUse::kMatmul),
             packed = c.backend->pack(m, WeightUse::kMatmul);
        ASSERT_TRUE(packed.ok());
        ref->matmul(expected, x, **reference, s.N % 2 ? bias : Tensor{});
        c.backend->matmul(found, x, **packed, s.N % 2 ? bias : Tensor{});
        float scale = std::sqrt(static_cast<float>(s.K)) * 3;
        EXPECT_LE(max_difference(expected, found), tolerance(c.label, format.info) * scale)
            << c.label << " " << format.info.name << " " << s.M << "x" << s.N << "x" << s.K;
      }
}

// One row of quantised weights, as long as models have them and of any size: on cuda in 15 bits, or
// in the 11 of f16 where the format has no file there. q8_0 has a limit with AMX (amx_unpack.h).
TEST(Matmul, ALongRow) {
  struct Row {
    std::int64_t K;
    float size;
  };
  auto ref = make_backend("ref");
  for (const Candidate& c : candidates())
    for (const Format& format : all_formats()) {
      if (!format.info.quantized || format.info.block == 1) continue;
      const bool limited = c.label.rfind("amx", 0) == 0 && format.info.name == std::string("q8_0");
      const float huge = limited ? 1e6f : 1e30f;
      for (const Row& r : {Row{4352, 1}, {4352, 1e-30f}, {4352, huge}, {14336, 1}, {16384, 1}}) {
        Arena arena;
        std::int64_t N = 33, K = whole_blocks(format, r.K);
        MatrixSource m = arena.matrix(format, N, K);
        Tensor x = arena.random({1, K}, r.size), expected = arena.f32({1, N}),
               found = arena.f32({1, N}, NAN);
        auto reference = ref->pack(m, WeightUse::kMatmul),
             packed = c.backend->pack(m, WeightUse::kMatmul);
        ref->matmul(expected, x, **reference);
        c.backend->matmul(found, x, **packed);
        const bool decoded = format.info.name == std::string("odd3");
        float allowed =
            c.label == "cuda" ? (decoded ? 1e-3f : 5e-4f) : 3 * tolerance(c.label, format.info);
        EXPECT_LE(max_difference(expected, found),
                  allowed * std::sqrt(static_cast<float>(K)) * r.size)
            << c.label << " " << format.info.name << " " << r.K << " " << r.size;
      }
    }
}

// Logits of bf16 weights are as exact as with f32 activations, by every instruction set, and a row
// has the same bits in every batch.
TEST(Matmul, AHeadOfBf16IsExact) {
  auto ref = make_backend("ref");
  for (const Candidate& c : candidates()) {
    if (c.label.rfind("cuda", 0) == 0) continue;
    for (std::int64_t M : {1, 5, 20, 300}) {
      Arena arena;
      std::int64_t K = 512, N = 80;
      MatrixSource m = arena.matrix(*find_format("bf16"), N, K);
      Tensor x = arena.random({M, K}), expected = arena.f32({M, N}), found = arena.f32({M, N}, NAN);
      auto reference = ref->pack(m, WeightUse::kHead),
           packed = c.backend->pack(m, WeightUse::kHead);
      ref->matmul(expected, x, **reference);
      c.backend->matmul(found, x, **packed);
      EXPECT_LE(max_difference(expected, found), 1e-3f) << c.label << " " << M;
      Tensor alone = arena.f32({1, N}, NAN);
      c.backend->matmul(alone, x.rows(1), **packed);
      EXPECT_TRUE(same_bits(alone, found.rows(1))) << c.label << " " << M;
    }
  }
}

// Formats that are computed in halves must use their range, whatever the matrix.
TEST(Matmul, LargeAndSmallWeightsAgreeWithRef) {
  auto ref = make_backend("ref");
  for (const Candidate& c : candidates())
    for (const Format& format : all_formats())
      for (float size : {1e-3f, 300.0f})
        for (std::int64_t M : {1, 20}) {
          Arena arena;
          const std::int64_t K = whole_blocks(format, 512);
          MatrixSource m = arena.matrix(format, 40, K, size);
          Tensor x = arena.random({M, K}), expected = arena.f32({M, 40}),
                 found = arena.f32({M, 40});
          auto reference = ref->pack(m, WeightUse::kMatmul),
               packed = c.backend->pack(m, WeightUse::kMatmul);
          ref->matmul(expected, x, **reference);
          c.backend->matmul(found, x, **packed);
          float allowed = tolerance(c.label, format.info) * std::sqrt(512.0f) * 3 * size;
          EXPECT_LE(max_difference(expected, found), allowed)
              << c.label << " " << format.info.name << " " << size << " " << M;
        }
}

// Levels and scales that no encoder would choose: every byte is random, but for the halves that
// scale a block. A row has the same bits alone and among others.
TEST(Matmul, AnyLevelsAndScales) {
  struct Kind {
    const char* name;
    std::vector<int> halves;  // where they are in a block
  };
  auto ref = make_backend("ref");
  for (const Candidate& c : candidates())
    for (const Kind& kind :
         {Kind{"q8_0", {0}}, {"q4_0", {0}}, {"q4_k", {0, 2}}, {"q5_k", {0, 2}}, {"q6_k", {208}}}) {
      if (find_format(kind.name) == nullptr) continue;
      Arena arena;
      const Format& format = *find_format(kind.name);
      const std::int64_t N = 40, K = 1024, M = 21;
      auto bytes = std::make_shared<std::vector<std::byte>>(format_bytes(format.info, N * K));
      for (std::byte& b : *bytes) b = static_cast<std::byte>(arena.rng()());
      for (std::size_t block = 0; block < bytes->size(); block += format.info.bytes)
        for (int at : kind.halves) {  // 2^-11 to 2^-7, of either sign
          auto half = static_cast<std::uint16_t>(0x1000 + (arena.rng()() & 0x8FFF));
          std::memcpy(bytes->data() + block + at, &half, 2);
        }
      MatrixSource m{
          .name = "w", .dtype = format.info.dtype, .cols = K, .row_data = {}, .owner = bytes};
      for (std::int64_t r = 0; r < N; ++r)
        m.row_data.push_back(bytes->data() + r * format_bytes(format.info, K));
      Tensor x = arena.random({M, K}), expected = arena.f32({M, N}), found = arena.f32({M, N}, NAN),
             alone = arena.f32({1, N}, NAN);
      auto reference = ref->pack(m, WeightUse::kMatmul),
           packed = c.backend->pack(m, WeightUse::kMatmul);
      ref->matmul(expected, x, **reference);
      c.backend->matmul(found, x, **packed);
      float size = 0;
      for (std::int64_t i = 0; i < M * N; ++i) size += expected.f32()[i] * expected.f32()[i];
      EXPECT_LE(max_difference(expected, found), 0.05f * std::sqrt(size / (M * N)))
          << c.label << " " << kind.name;
      if (c.label == "cuda") continue;
      c.backend->matmul(alone, x.rows(1), **packed);
      EXPECT_TRUE(same_bits(alone, found.rows(1))) << c.label << " " << kind.name;
    }
}

// A format that has no file in kernels/<backend>/formats is decoded: on the cpu when it is used, on
// the GPU when it is packed, to f16. A product then has the bits of one with the decoded weights.
TEST(Matmul, AFormatWithoutAFastPathIsDecoded) {
  const Format* format = find_format("odd3");  // of quant/testing: no backend can have such a file
  ASSERT_NE(format, nullptr);
  for (const Candidate& c : candidates()) {
    const Format& plain = *find_format(is_cuda(c) ? "f16" : "f32");
    for (std::int64_t M : {1, 2, 9, 40, 530}) {
      Arena arena;
      const std::int64_t N = 70, K = 24 * 23;
      MatrixSource m = arena.matrix(*format, N, K);
      auto bytes = std::make_shared<std::vector<std::byte>>(format_bytes(plain.info, N * K));
      MatrixSource decoded{
          .name = "w", .dtype = plain.info.dtype, .cols = K, .row_data = {}, .owner = bytes};
      std::vector<float> row(K);
      for (std::int64_t r = 0; r < N; ++r) {
        decoded.row_data.push_back(bytes->data() + r * format_bytes(plain.info, K));
        format->decode(m.row_data[r], K / format->info.block, row.data());
        plain.encode(row.data(), K, bytes->data() + r * format_bytes(plain.info, K));
      }
      auto a = c.backend->pack(m, WeightUse::kMatmul),
           b = c.backend->pack(decoded, WeightUse::kMatmul);
      ASSERT_TRUE(a.ok() && b.ok()) << c.label;
      EXPECT_EQ((*a)->dtype(), format->info.dtype);
      EXPECT_EQ(c.backend->packed_bytes(format->info.dtype, N, K, WeightUse::kMatmul),
                is_cuda(c) ? (*a)->bytes() : 0);
      Tensor x = arena.random({M, K}), found = arena.f32({M, N}, NAN), expected = arena.f32({M, N});
      c.backend->matmul(found, x, **a);
      c.backend->matmul(expected, x, **b);
      EXPECT_TRUE(same_bits(found, expected)) << c.label << " " << M;
    }
  }
}

// Activations as feed-forward layers have them: small ones that lean to one side, and a large one
// here and there, which takes the range of integers for itself.
TEST(Matmul, SmallActivationsBesideLargeOnes) {
  auto ref = make_backend("ref");
  for (const Candidate& c : candidates())
    for (const Format& format : all_formats())
      for (std::int64_t M : {1, 9, 40}) {
        Arena arena;
        const std::int64_t N = 64, K = whole_blocks(format, 1024);
        MatrixSource m = arena.matrix(format, N, K);
        Tensor x = arena.random({M, K}), expected = arena.f32({M, N}), found = arena.f32({M, N});
        for (std::int64_t i = 0; i < M * K; ++i) {
          float& v = x.f32()[i];
          v = i % 256 == 77 ? 60.0f : 0.5f * v * (1 + std::erf(v * std::sqrt(0.5f)));
        }
        auto reference = ref->pack(m, WeightUse::kMatmul),
             packed = c.backend->pack(m, WeightUse::kMatmul);
        ref->matmul(expected, x, **reference);
        c.backend->matmul(found, x, **packed);
        double size = 0, error = 0;
        for (std::int64_t i = 0; i < M * N; ++i) {
          const double e = expected.f32()[i], d = e - found.f32()[i];
          size += e * e, error += d * d;
        }
        EXPECT_LE(std::sqrt(error / size), 0.015) << c.label << " " << format.info.name << " " << M;
      }
}

// The promise the engine stands on: a row's bits do not depend on how many rows there are, on its
// place among them, or on the number of threads.
TEST(Matmul, ARowHasTheSameBitsInEveryBatch) {
  for (const auto& [isa, one, many] : exact_pairs())
    for (const Format& format : all_formats()) {
      Arena arena;
      std::int64_t N = 70, K = format.info.block == 1 ? 301 : whole_blocks(format, 512);
      MatrixSource m = arena.matrix(format, N, K);
      auto a = one->pack(m, WeightUse::kMatmul), b = many->pack(m, WeightUse::kMatmul);
      const std::int64_t rows = 530;  // more than one call takes
      Tensor x = arena.random({rows, K}), alone = arena.f32({rows, N});
      for (std::int64_t t = 0; t < rows; ++t) one->matmul(alone.rows(t, 1), x.rows(t, 1), **a);
      for (std::int64_t M : {2, 3, 4, 5, 8, 15, 16, 17, 32, 33, 257, 530}) {
        Tensor together = arena.f32({M, N});
        std::int64_t first = rows - M;
        many->matmul(together, x.rows(first, M), **b);
        EXPECT_TRUE(same_bits(alone.rows(first, M), together))
            << isa << " " << format.info.name << " " << M;
      }
    }
}

TEST(Matmul, Avx2Avx512AndVnniGiveTheSameBits) {
  auto narrow = make_backend("cpu", "avx2", 1);
  for (const std::string& isa : cpu_isas()) {
    if (isa != "avx512" && isa != "vnni") continue;
    auto wide = make_backend("cpu", isa, 1);
    for (const Format& format : all_formats()) {
      Arena arena;
      const std::int64_t K = whole_blocks(format, 512);
      MatrixSource m = arena.matrix(format, 64, K);
      auto a8 = narrow->pack(m, WeightUse::kMatmul), a16 = wide->pack(m, WeightUse::kMatmul);
      for (std::int64_t M : {21, 42}) {
        Tensor x = arena.random({M, K}), a = arena.f32({M, 64}), b = arena.f32({M, 64});
        narrow->matmul(a, x, **a8);
        wide->matmul(b, x, **a16);
        EXPECT_TRUE(same_bits(a, b)) << isa << " " << format.info.name << " " << M;
      }
    }
  }
}

// The last of the formats of blocks of 256, the one that files mix with the others.
const Format& wide_format() {
  const Format* last = find_format("bf16");
  for (const Format& f : all_formats())
    if (f.info.block == 256) last = &f;
  return *last;
}

// Tile shapes differ by the number of rows and for the measurement of the peak, and belong to
// threads.
TEST(Matmul, KindsMayAlternate) {
  for (const std::string& isa : cpu_isas()) {
    auto b = make_backend("cpu", isa, 2);
    Arena arena;
    auto levels = b->pack(arena.matrix(wide_format(), 96, 512), WeightUse::kMatmul);
    auto bf16 = b->pack(arena.matrix(*find_format("bf16"), 96, 512), WeightUse::kMatmul);
    Tensor x = arena.random({45, 512}), first[2] = {arena.f32({45, 96}), arena.f32({45, 96})};
    b->matmul(first[0], x, **levels);
    b->matmul(first[1], x, **bf16);
    for (int round = 0; round < 3; ++round) {
      Tensor again[2] = {arena.f32({45, 96}), arena.f32({45, 96})};
      if (round > 0) {
        const Peak peak = b->measure_peak(round == 1 ? DType::kBF16 : wide_format().info.dtype);
        EXPECT_GT(peak.gflop_s, 0) << isa;
        EXPECT_GT(peak.read_gb_s, 0) << isa;
      }
      std::thread([&] { b->matmul(again[0], x, **levels); }).join();
      b->matmul(again[1], x, **bf16);
      EXPECT_TRUE(same_bits(first[0], again[0]) && same_bits(first[1], again[1])) << isa;
    }
  }
}

// The fused products are those of matmul(), to its accuracy. The third of a group of blocks of 256
// is of the widest such format, as mixed models have it.
TEST(Matmul, GroupsAndGatesAgreeWithRef) {
  auto ref = make_backend("ref");
  for (const Candidate& c : candidates())
    for (const Format& format : all_formats())
      for (std::int64_t T : {1, 3, 20}) {
        Arena arena;
        std::int64_t K = whole_blocks(format, 512), N[] = {96, 32, 40};
        Tensor x = arena.random({T, K}), expected[3], found[3];
        std::unique_ptr<Weight> a[3], b[3];
        std::vector<MatmulPart> ref_parts, parts;
        for (int i = 0; i < 3; ++i) {
          bool mixed = i == 2 && format.info.block == 256;
          MatrixSource m = arena.matrix(mixed ? wide_format() : format, N[i], K, 0.1f);
          a[i] = std::move(ref->pack(m, WeightUse::kMatmul)).value();
          b[i] = std::move(c.backend->pack(m, WeightUse::kMatmul)).value();
          expected[i] = arena.f32({T, N[i]}), found[i] = arena.f32({T, N[i]}, NAN);
          Tensor bias = i == 1 ? arena.random({N[i]}) : Tensor{};
          ref_parts.push_back({expected[i], a[i].get(), bias});
          parts.push_back({found[i], b[i].get(), bias});
        }
        InputNorm before{T == 3 ? Tensor{} : arena.random({K}), 1e-5f, arena.f32({T, K})};
        ref->matmul_group(ref_parts, x, before);
        c.backend->matmul_group(parts, x, before);
        float allowed = 0.1f * tolerance(c.label, format.info) * std::sqrt(512.0f) * 3;
        for (int i = 0; i < 3; ++i)
          EXPECT_LE(max_difference(expected[i], found[i]), allowed)
              << c.label << " " << format.info.name << " " << T << " part " << i;
        MatrixSource gate = arena.matrix(format, 96, K, 0.1f),
                     up = arena.matrix(format, 96, K, 0.1f);
        Tensor scratch = arena.f32({T, 96}), e = arena.f32({T, 96}), f = arena.f32({T, 96}, NAN);
        auto g1 = ref->pack(gate, WeightUse::kMatmul), u1 = ref->pack(up, WeightUse::kMatmul);
        auto g2 = c.backend->pack(gate, WeightUse::kMatmul),
             u2 = c.backend->pack(up, WeightUse::kMatmul);
        Tensor bias = T == 3 ? arena.random({96}) : Tensor{};
        InputNorm norm{T == 20 ? Tensor{} : arena.random({K}), 1e-5f, arena.f32({T, K})};
        ref->matmul_glu(e, scratch, x, norm, **g1, bias, **u1, {}, Activation::kSilu);
        c.backend->matmul_glu(f, scratch, x, norm, **g2, bias, **u2, {}, Activation::kSilu);
        EXPECT_LE(max_difference(e, f), 30 * allowed) << c.label << " " << format.info.name;
        ref->matmul_add(expected[0], arena.f32({T, N[0]}), x, *a[0]);
        c.backend->matmul_add(found[0], arena.f32({T, N[0]}), x, *b[0]);
        EXPECT_LE(max_difference(expected[0], found[0]), 2 * allowed) << c.label << " add";
      }
}

// What a product takes after a gate is what its tensor holds, to the bit: right after it, of other
// rows, with a norm, beside one of another type, and when the host or a copy came between.
TEST(Matmul, AProductAfterAGateTakesWhatItsTensorHolds) {
  std::vector<Candidate> all = candidates();
  for (Candidate& c : queueing_candidates()) all.push_back(std::move(c));
  for (const Candidate& c : all)
    for (std::int64_t T : {2, 5, 8, 9, 17, 33, 64, 65, 130})
      for (std::int64_t F : {96, 192}) {
        Backend& b = *c.backend;
        Arena arena;
        std::int64_t E = 128, bytes = T * F * 4;
        auto weight = [&](const char* type, std::int64_t rows, std::int64_t cols) {
          return std::move(
                     b.pack(arena.matrix(*find_format(type), rows, cols, 0.1f), WeightUse::kMatmul))
              .value();
        };
        auto gate = weight("bf16", F, E), up = weight("bf16", F, E), down = weight("bf16", E, F),
             eight = weight("q8_0", E, F), wide = weight("f32", E, F);
        Buffer memory = std::move(b.allocate(2 * bytes)).value();
        Tensor h{memory.data(), DType::kF32, {T, F}},
            moved{static_cast<std::byte*>(memory.data()) + bytes, DType::kF32, {T, F}};
        Tensor x = arena.random({T, E}), scratch = arena.f32({T, F}), other = arena.random({T, F}),
               norm = arena.random({F}), normed = arena.f32({T, F});
        std::vector<Tensor> found, expected;
        auto product = [&](std::vector<Tensor>& to, Tensor rows, bool with_norm = false) {
          MatmulPart parts[3];
          const Weight* weights[3] = {down.get(), eight.get(), wide.get()};
          for (int i = 0; i < 3; ++i) {
            to.push_back(arena.f32({rows.dim(0), E}, NAN));
            parts[i] = {to.back(), weights[i], {}};
          }
          b.matmul_group(parts, rows, {with_norm ? norm : Tensor{}, 1e-5f, normed});
        };
        auto run_gate = [&] {
          b.matmul_glu(h, scratch, x, {}, *gate, {}, *up, {}, Activation::kSilu);
        };
        b.begin_step(1, false);
        run_gate(), product(found, h);
        b.copy(moved.data, h.data, bytes), product(expected, moved);
        product(found, h), product(expected, moved);
        run_gate(), product(found, h.rows(T - 1)), product(expected, moved.rows(T - 1));
        run_gate(), product(found, h, true), product(expected, moved, true);
        run_gate(), b.write(h.data, other.data, bytes), product(found, h);
        product(expected, other);
        b.write(moved.data, other.data, bytes);
        run_gate(), b.copy(h.data, moved.data, bytes), product(found, h);
        product(expected, other);
        b.wait(b.end_step());
        for (std::size_t i = 0; i < found.size(); ++i)
          EXPECT_TRUE(same_bits(found[i], expected[i]))
              << c.label << ", " << T << " rows of " << F << ", product " << i;
      }
}

TEST(Embed, DecodesRowsExactly) {
  auto ref = make_backend("ref");
  for (const Candidate& c : candidates())
    for (const Format& format : all_formats()) {
      Arena arena;
      const std::int64_t E = whole_blocks(format, 512);
      MatrixSource m = arena.matrix(format, 9, E);
      Tensor ids = arena.i32({8, 0, 3, 3}), a = arena.f32({4, E}), b = arena.f32({4, E});
      ref->embed(a, **ref->pack(m, WeightUse::kTable), ids, 1.5f);
      c.backend->embed(b, **c.backend->pack(m, WeightUse::kTable), ids, 1.5f);
      EXPECT_TRUE(same_bits(a, b)) << c.label << " " << format.info.name;
    }
}

TEST(Embed, TakesTokensThatTheDeviceDrew) {
  for (const Candidate& c : candidates()) {
    if (!c.backend->asynchronous()) continue;
    Arena arena;
    MatrixSource m = arena.matrix(*find_format("bf16"), 9, 512);
    auto table = c.backend->pack(m, WeightUse::kTable);
    Tensor a = arena.f32({4, 512}), b = arena.f32({4, 512});
    c.backend->embed(a, **table, arena.i32({8, 0, 3, 5}));
    c.backend->feed_from(arena.i32({5, 7, 0}));
    c.backend->embed(b, **table, arena.i32({8, -3, 3, -1}));
    EXPECT_TRUE(same_bits(a, b)) << c.label;
  }
}

}  // namespace
}  // namespace vitrine::testing
