// A device draws the host's tokens: from the same logits, parameters and random numbers.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "kernels/backend.h"
#include "sampling/chain.h"
#include "sampling/rng.h"

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

TEST(Draw, TheDeviceDrawsTheTokensOfTheHost) {
  auto created = create_backend("cuda", {.synchronous = true});
  if (!created.ok()) GTEST_SKIP() << created.error().message;
  Backend& b = **created;
  std::vector<Setting> settings;
  for (double t : {0.0, 0.7, 1.0, 2.0})
    for (double k : {0.0, 1.0, 40.0, 5000.0})
      for (double p : {1.0, 0.9, 0.3})
        for (double m : {0.0, 0.05, 1.0}) settings.push_back({t, k, p, m});
  std::mt19937 rng(5);
  for (int V : {3, 1000, 50257, 151936})
    for (int kind = 0; kind < 9; ++kind) {
      std::vector<float> logits = make_logits(kind, V, rng);
      auto M = static_cast<std::int64_t>(settings.size());
      auto memory = b.allocate_shared(M * V * 4), rows = b.allocate_shared(M * sizeof(DrawRow)),
           out = b.allocate_shared(M * sizeof(DrawnRow)), last = b.allocate_shared(M * 4);
      auto* draws = static_cast<DrawRow*>(rows->data());
      auto* drawn = static_cast<DrawnRow*>(out->data());
      Scratch scratch(V);
      std::vector<Choice> expected;
      for (std::int64_t i = 0; i < M; ++i) {
        std::memcpy(static_cast<float*>(memory->data()) + i * V, logits.data(), 4UL * V);
        SamplingParams params;
        const Setting& s = settings[i];
        ASSERT_TRUE(params.set("temperature", s.temperature).ok() &&
                    params.set("top_k", s.top_k).ok() && params.set("top_p", s.top_p).ok() &&
                    params.set("min_p", s.min_p).ok());
        Chain chain(params);
        auto d = chain.on_device();
        ASSERT_TRUE(d);
        auto position = static_cast<std::uint64_t>(i * 31 + kind);
        draws[i] = {random_bits(11, 2, position), d->scale, d->top_p, d->max_nats, d->top_k,
                    static_cast<std::int32_t>(i)};
        SamplerState none;
        expected.push_back(chain.sample(logits, none, {11, 2, position, false}, scratch));
      }
      b.draw(drawn, {last->data(), DType::kI32, {M}}, draws, {memory->data(), DType::kF32, {M, V}},
             false);
      for (std::int64_t i = 0; i < M; ++i) {
        const Setting& s = settings[i];
        ASSERT_EQ(drawn[i].status, static_cast<int>(expected[i].status)) << "kind " << kind;
        if (expected[i].status != LogitsStatus::kOk) continue;
        EXPECT_EQ(drawn[i].token, expected[i].token)
            << "V " << V << " kind " << kind << " temperature " << s.temperature << " top_k "
            << s.top_k << " top_p " << s.top_p << " min_p " << s.min_p;
        EXPECT_EQ(static_cast<std::int32_t*>(last->data())[i], drawn[i].token);
      }
      // The greedy rows again, where they are all there is to draw; twice, for what the first
      // leaves behind.
      for (std::int64_t i = 0; i < M; ++i)
        if (draws[i].top_k != 1) draws[i].slot = -1;
      for (int turn = 0; turn < 2; ++turn) {
        for (std::int64_t i = 0; i < M; ++i) drawn[i] = {-7, -7};
        b.draw(drawn, {last->data(), DType::kI32, {M}}, draws,
               {memory->data(), DType::kF32, {M, V}}, true);
        for (std::int64_t i = 0; i < M; ++i) {
          bool greedy = draws[i].slot >= 0;
          EXPECT_EQ(drawn[i].status, greedy ? static_cast<int>(expected[i].status) : -7);
          if (!greedy || expected[i].status != LogitsStatus::kOk) continue;
          EXPECT_EQ(drawn[i].token, expected[i].token) << "V " << V << " kind " << kind;
        }
      }
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
