// A device draws the host's tokens: from the same logits, parameters and noise.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <tuple>

#include "kernels/backend.h"
#include "sampling/chain.h"

namespace vitrine {
namespace {

struct Setting {
  double temperature, top_k, top_p, min_p;
};

std::vector<float> make_logits(int kind, int V, std::mt19937& rng) {
  std::normal_distribution<float> normal(0, kind == 1 ? 0.01f : 3);
  std::vector<float> out(V);
  for (float& x : out) x = normal(rng);
  if (kind == 2)  // ties, in crowds
    for (float& x : out) x = std::round(x);
  if (kind == 3) std::fill(out.begin(), out.end(), 1.5f);
  if (kind == 4)  // masks and infinities
    for (int i = 0; i < V; ++i) out[i] = i % 3 == 0 ? -INFINITY : i % 1009 == 1 ? INFINITY : out[i];
  if (kind == 5) out[V / 2] = 40;
  if (kind == 6) out[V / 3] = NAN;
  if (kind == 7) std::fill(out.begin(), out.end(), -INFINITY);
  if (kind == 8)
    for (float& x : out) x = std::signbit(x) ? -0.0f : 0.0f;
  return out;
}

constexpr std::uint64_t kSeed = 11;
constexpr std::uint32_t kChoice = 2;

SamplingParams params_of(const Setting& s) {
  SamplingParams out;
  EXPECT_TRUE(out.set("temperature", s.temperature).ok() && out.set("top_k", s.top_k).ok() &&
              out.set("top_p", s.top_p).ok() && out.set("min_p", s.min_p).ok());
  return out;
}

// Draws a token from `logits` under each setting, all in one call; then the greedy ones alone.
void expect_the_hosts(Backend& b, std::span<const Setting> settings, std::span<const float> logits,
                      std::uint64_t first_position) {
  const auto M = static_cast<std::int64_t>(settings.size()),
             V = static_cast<std::int64_t>(logits.size());
  auto memory = b.allocate_shared(M * V * 4), rows = b.allocate_shared(M * sizeof(DrawRow)),
       out = b.allocate_shared(M * sizeof(DrawnRow)), table = b.allocate_shared(M * 4);
  ASSERT_TRUE(memory.ok() && rows.ok() && out.ok() && table.ok());
  auto* draws = static_cast<DrawRow*>(rows->data());
  auto* drawn = static_cast<DrawnRow*>(out->data());
  const Tensor last{table->data(), DType::kI32, {M}}, x{memory->data(), DType::kF32, {M, V}};
  Scratch scratch(logits.size());
  std::vector<Choice> expected;
  for (std::int64_t i = 0; i < M; ++i) {
    std::copy(logits.begin(), logits.end(), x.f32() + i * V);
    const Chain chain(params_of(settings[i]));
    const auto d = chain.on_device();
    ASSERT_TRUE(d);
    const DrawSpec spec{kSeed, kChoice, first_position + static_cast<std::uint64_t>(i), false};
    draws[i] = {spec.key(),  d->scale, d->top_p,
                d->max_nats, d->top_k, static_cast<std::int32_t>(M - 1 - i)};
    SamplerState none;
    expected.push_back(chain.sample(logits, none, spec, scratch));
  }
  b.draw(drawn, last, draws, x, false);
  for (std::int64_t i = 0; i < M; ++i) {
    const Setting& s = settings[i];
    ASSERT_EQ(drawn[i].status, static_cast<int>(expected[i].status));
    if (expected[i].status != LogitsStatus::kOk) continue;
    EXPECT_EQ(drawn[i].token, expected[i].token)
        << "temperature " << s.temperature << " top_k " << s.top_k << " top_p " << s.top_p
        << " min_p " << s.min_p;
    EXPECT_EQ(last.i32()[draws[i].slot], drawn[i].token);
  }
  // The greedy rows again, where they are all there is to draw; twice, for what the first leaves
  // behind.
  for (std::int64_t i = 0; i < M; ++i)
    if (draws[i].top_k != 1) draws[i].slot = -1;
  for (int turn = 0; turn < 2; ++turn) {
    for (std::int64_t i = 0; i < M; ++i) drawn[i] = {-7, -7};
    b.draw(drawn, last, draws, x, true);
    for (std::int64_t i = 0; i < M; ++i) {
      const bool greedy = draws[i].slot >= 0;
      EXPECT_EQ(drawn[i].status, greedy ? static_cast<int>(expected[i].status) : -7);
      if (!greedy || expected[i].status != LogitsStatus::kOk) continue;
      EXPECT_EQ(drawn[i].token, expected[i].token);
    }
  }
}

// The backends that draw, of which some may not be here, with vocabularies; 64 ids are a block of the
// race.
class DrawTest : public testing::TestWithParam<std::tuple<const char*, int>> {
 protected:
  void SetUp() override {
    auto created = create_backend(std::get<0>(GetParam()), {.synchronous = true});
    if (!created.ok()) GTEST_SKIP() << created.error().message;
    backend_ = std::move(*created);
  }
  std::unique_ptr<Backend> backend_;
  int V_ = std::get<1>(GetParam());
};
INSTANTIATE_TEST_SUITE_P(Backends, DrawTest,
                         testing::Combine(testing::Values("ref", "cuda"),
                                          testing::Values(1, 3, 63, 64, 65, 1000, 4097, 32000,
                                                          50257, 151936)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) + "_" +
                                  std::to_string(std::get<1>(info.param));
                         });

TEST_P(DrawTest, TheDeviceDrawsTheTokensOfTheHost) {
  std::vector<Setting> all, some;
  for (double t : {0.0, 0.7, 1.0, 2.0})
    for (double k : {0.0, 1.0, 40.0, 5000.0})
      for (double p : {1.0, 0.9, 0.3})
        for (double m : {0.0, 0.05, 1.0}) all.push_back({t, k, p, m});
  // ref sorts the whole row each time.
  for (std::size_t i = 0; i < all.size(); i += 11) some.push_back(all[i]);
  const bool slow = backend_->name() == "ref" && V_ > 10000;
  std::mt19937 rng(5);
  for (int kind = 0; kind < 9; ++kind) {
    SCOPED_TRACE("kind " + std::to_string(kind));
    const std::vector<float> logits = make_logits(kind, V_, rng);
    expect_the_hosts(*backend_, slow ? some : all, logits, 31 * static_cast<std::uint64_t>(kind));
    // Few rows are spread wider; the same settings with other noise.
    expect_the_hosts(*backend_, some, logits, 1 + (std::uint64_t{1} << 33));
  }
}

// Nothing is cut: every id of the vocabulary races.
TEST_P(DrawTest, WholeVocabularies) {
  std::mt19937 rng(6);
  const std::vector<Setting> settings(24, Setting{1.0, 0, 1, 0});
  for (int kind : {0, 1, 2, 3, 4, 5, 8}) {
    SCOPED_TRACE("kind " + std::to_string(kind));
    expect_the_hosts(*backend_, settings, make_logits(kind, V_, rng),
                     100 * static_cast<std::uint64_t>(V_ + kind));
  }
}

TEST(Draw, OnlyTheDefaultOrderIsTheDevices) {
  SamplingParams plain, order, penalty;
  ASSERT_TRUE(plain.set("temperature", 0.5).ok() && plain.set("top_k", 9).ok());
  order = plain, penalty = plain;
  std::vector<std::string> names{"top_k", "temperature"};
  ASSERT_TRUE(order.set_order(names).ok());
  ASSERT_TRUE(penalty.set("repetition_penalty", 1.1).ok());
  EXPECT_TRUE(Chain(plain).on_device());
  EXPECT_EQ(Chain(plain).on_device()->top_k, 9);
  EXPECT_EQ(Chain(plain).on_device()->scale, 2);
  EXPECT_FALSE(Chain(order).on_device());
  EXPECT_FALSE(Chain(penalty).on_device());
}

}  // namespace
}  // namespace vitrine
