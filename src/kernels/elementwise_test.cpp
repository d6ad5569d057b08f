#include "kernels/testing.h"

namespace vitrine::testing {
namespace {

constexpr std::int64_t kWidths[] = {1, 7, 8, 16, 33, 64, 100, 2048};

TEST(Norm, AgreesWithRef) {
  auto ref = make_backend("ref");
  for (const Candidate& c : candidates())
    for (std::int64_t E : kWidths) {
      Arena arena;
      Tensor x = arena.random({19, E}, 3), w = arena.random({E}), b = arena.random({E});
      Tensor expected = arena.f32({19, E}), found = arena.f32({19, E});
      ref->rms_norm(expected, x, w, 1e-5f);
      c.backend->rms_norm(found, x, w, 1e-5f);
      EXPECT_LE(max_difference(expected, found), 3e-5f) << c.label << " rms " << E;
      ref->layer_norm(expected, x, w, b, 1e-5f);
      c.backend->layer_norm(found, x, w, b, 1e-5f);
      EXPECT_LE(max_difference(expected, found), 3e-5f) << c.label << " layer " << E;
      Tensor r1 = arena.f32({19, E}), r2 = arena.f32({19, E}), d = arena.random({19, E});
      ref->add(r1, x, d);
      ref->add(r2, x, d);
      ref->rms_norm(expected, r1, w, 1e-5f);
      Tensor residual = arena.f32({19, E});
      c.backend->add(residual, x, arena.f32({19, E}));
      c.backend->add_rms_norm(found, residual, d, w, 1e-5f);
      EXPECT_TRUE(same_bits(residual, r2));
      EXPECT_LE(max_difference(expected, found), 3e-5f) << c.label << " add_rms " << E;
    }
}

TEST(Norm, ARowHasTheSameBitsAlone) {
  for (const Candidate& c : candidates()) {
    Arena arena;
    Tensor x = arena.random({500, 100}), w = arena.random({100});
    Tensor all = arena.f32({500, 100}), alone = arena.f32({500, 100});
    c.backend->rms_norm(all, x, w, 1e-6f);
    for (int t = 0; t < 500; ++t) c.backend->rms_norm(alone.rows(t, 1), x.rows(t, 1), w, 1e-6f);
    EXPECT_TRUE(same_bits(all, alone)) << c.label;
  }
}

TEST(Activation, AgreesWithRef) {
  auto ref = make_backend("ref");
  for (const Candidate& c : candidates())
    for (Activation act :
         {Activation::kSilu, Activation::kGelu, Activation::kGeluTanh, Activation::kRelu})
      for (std::int64_t F : kWidths) {
        Arena arena;
        Tensor x = arena.random({11, F}, 4), u = arena.random({11, F});
        x.f32()[0] = 200, x.f32()[F > 1 ? 1 : 0] = -200;
        Tensor a = arena.f32({11, F}), b = arena.f32({11, F}), zero = arena.f32({11, F});
        ref->add(a, x, zero);
        ref->add(b, x, zero);
        ref->activate(a, act);
        c.backend->activate(b, act);
        EXPECT_LE(max_difference(a, b), 3e-6f)
            << c.label << " " << static_cast<int>(act) << " " << F;
        ref->glu(a, x, u, act);
        c.backend->glu(b, x, u, act);
        EXPECT_LE(max_difference(a, b), 2e-5f)
            << c.label << " glu " << static_cast<int>(act) << " " << F;
      }
}

TEST(Softcap, AgreesWithRef) {
  auto ref = make_backend("ref");
  for (const Candidate& c : candidates()) {
    Arena arena;
    Tensor x = arena.random({3, 77}, 40), a = arena.f32({3, 77}), b = arena.f32({3, 77});
    Tensor zero = arena.f32({3, 77});
    ref->add(a, x, zero);
    ref->add(b, x, zero);
    ref->softcap(a, 30);
    c.backend->softcap(b, 30);
    EXPECT_LE(max_difference(a, b), 3e-5f) << c.label;
  }
}

TEST(Activation, ANanStaysANan) {
  for (const Candidate& c : candidates())
    for (Activation act :
         {Activation::kSilu, Activation::kGelu, Activation::kGeluTanh, Activation::kRelu}) {
      Arena arena;
      Tensor x = arena.f32({1, 33}, NAN), capped = arena.f32({1, 33}, NAN);
      c.backend->activate(x, act);
      c.backend->softcap(capped, 30);
      for (int i = 0; i < 33; ++i)
        ASSERT_TRUE(std::isnan(x.f32()[i]) && std::isnan(capped.f32()[i])) << c.label;
    }
}

TEST(Rope, AgreesWithRef) {
  auto ref = make_backend("ref");
  for (const Candidate& c : candidates()) {
    Arena arena;
    Tensor positions = arena.i32({0, 1, 77, 4095, 100000});
    Tensor freq = arena.f32({6});
    for (int i = 0; i < 6; ++i) freq.f32()[i] = std::pow(10000.0f, -static_cast<float>(i) / 6);
    Tensor ta = arena.f32({5, 6, 2}), tb = arena.f32({5, 6, 2});
    ref->rope_table(ta, positions, freq, 1.1f);
    c.backend->rope_table(tb, positions, freq, 1.1f);
    if (is_cuda(c))
      EXPECT_LE(max_difference(ta, tb), 1e-6f) << c.label;  // another library's sine
    else
      EXPECT_TRUE(same_bits(ta, tb)) << c.label;
    Tensor xa = arena.random({5, 3, 20}), xb = arena.f32({5, 3, 20});
    c.backend->add(xb.view({5, 60}), xa.view({5, 60}), arena.f32({5, 60}));
    ref->rope(xa, ta);
    c.backend->rope(xb, tb);
    EXPECT_LE(max_difference(xa, xb), 1e-6f) << c.label;
  }
}

TEST(GatherRows, NormsThem) {
  for (const Candidate& c : candidates())
    for (int E : {5, 64, 2048, 9000}) {
      Arena arena;
      Tensor x = arena.random({6, E}), w = arena.random({E}), rows = arena.i32({5, 0, 5});
      Tensor out = arena.f32({3, E}), taken = arena.f32({3, E}), expected = arena.f32({3, E});
      c.backend->gather_rms_norm(out, x, rows, w, 1e-5f);
      c.backend->gather_rows(taken, x, rows);
      c.backend->rms_norm(expected, taken, w, 1e-5f);
      EXPECT_TRUE(same_bits(out, expected)) << c.label << " " << E;
      // No rows, as in a part of a prompt: nothing is read or written.
      c.backend->gather_rms_norm(out.rows(0, 0), x, arena.i32({1 << 30}).rows(0, 0), w, 1e-5f);
      EXPECT_TRUE(same_bits(out, expected)) << c.label << " " << E;
    }
}

TEST(GatherRows, Copies) {
  for (const Candidate& c : candidates()) {
    Arena arena;
    Tensor x = arena.random({6, 5}), out = arena.f32({3, 5});
    c.backend->gather_rows(out, x, arena.i32({5, 0, 5}));
    EXPECT_TRUE(same_bits(out.rows(0, 1), x.rows(5, 1)));
    EXPECT_TRUE(same_bits(out.rows(1, 1), x.rows(0, 1)));
    EXPECT_TRUE(same_bits(out.rows(2, 1), x.rows(5, 1)));
  }
}

}  // namespace
}  // namespace vitrine::testing
