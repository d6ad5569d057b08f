// infill against a plain version, which is written after the definition, over rows and vocabularies at random.
#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include "sampling/chain.h"
#include "sampling/test_row.h"
#include "sampling/token_texts.h"
#include "support/allocation_count.h"

namespace vitrine {
namespace {

using namespace test;
using testing::ElementsAre;

struct Plain {
  std::int32_t id;
  double p;
  std::string text;
  bool end;
};

// Ids that stay.
std::vector<std::int32_t> naive(std::vector<Plain> all) {
  std::stable_sort(all.begin(), all.end(),
                   [](const Plain& a, const Plain& b) { return a.p > b.p; });
  std::vector<std::int32_t> out;
  double end = 0, text = 0;
  for (const Plain& t : all) (t.end ? end : text) += t.p;
  if (3 * end * static_cast<double>(all.size()) > text) {
    for (const Plain& t : all)
      if (t.end) out.push_back(t.id);
    return out;
  }
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t k = 0; k < all.size(); ++k) {
      Plain *a = &all[i], *b = &all[k];
      if (i == k || a->p < 0 || b->p < 0 || a->text.empty()) continue;
      if (b->text.substr(0, a->text.size()) != a->text) continue;
      if (b->p > a->p) std::swap(a, b);
      a->p += b->p;
      b->p = -1;  // gone
    }
  std::erase_if(all, [](const Plain& t) { return t.p < 0 || (!t.end && t.p < 0.2); });
  double left = 0, texts = 0;
  for (const Plain& t : all) left += t.p, texts += !t.end;
  if (texts == 0) return {};  // the end
  for (const Plain& t : all)
    if (t.end || t.p / left >= 1 / (texts + 1)) out.push_back(t.id);
  return out;
}

std::shared_ptr<const TokenTexts> texts_of(const std::vector<std::string>& texts,
                                           std::vector<std::int32_t> ends) {
  return std::make_shared<const TokenTexts>(texts, std::move(ends));
}

TEST(Infill, AgreesWithAPlainVersion) {
  std::mt19937 rng(4);
  int ended = 0, merged = 0, kept = 0;
  for (int round = 0; round < 20000; ++round) {
    const int n = 1 + static_cast<int>(rng() % 12);
    std::vector<std::string> texts;
    std::vector<Plain> all;
    double sum = 0;
    for (int i = 0; i < n; ++i) {
      std::string text;
      for (auto length = rng() % 4; length > 0; --length)
        text += static_cast<char>('a' + rng() % 4);
      const double p = std::exp(-static_cast<double>(rng() % 1000) / (rng() % 2 ? 150 : 1500));
      all.push_back({i, p, text, false});
      texts.push_back(text);
      sum += p;
    }
    std::vector<std::int32_t> ends{n};
    texts.emplace_back();
    const double end = std::exp(-static_cast<double>(rng() % 8000) / 1000) / 10;
    all.push_back({n, end, "", true});
    sum += end;
    if (rng() % 3 == 0) {
      ends.push_back(n + 1);
      texts.emplace_back("a");
      all.push_back({n + 1, end / 3, "a", true});
      sum += end / 3;
    }
    std::vector<double> shares;
    for (Plain& t : all) shares.push_back(t.p /= sum);
    auto expected = naive(all);
    if (expected.empty()) {
      ++ended;
      expected = {n};
    }
    Row row(logs(shares));
    row.texts(texts_of(texts, ends)).apply("infill", {1});
    auto got = row.ids();
    std::sort(got.begin(), got.end()), std::sort(expected.begin(), expected.end());
    ASSERT_EQ(got, expected) << "round " << round;
    merged += got.size() > 1, kept += got[0] < n;
  }
  EXPECT_GT(ended, 300);
  EXPECT_GT(merged, 100);
  EXPECT_GT(kept, 1000);
}

TEST(Infill, EndsMergesAndDrops) {
  const auto texts = texts_of({"ab", "a", "x", "abc", ""}, {4});
  const auto kept = [&](std::vector<double> p) {
    Row row(logs(std::move(p)));
    return row.texts(texts).apply("infill", {1}).ids();
  };
  // 3 * 5 * .07 > .93
  EXPECT_THAT(kept({.7, .1, .1, .03, .07}), ElementsAre(4));
  // "ab", "a" and "abc" are one; x is below 0.2.
  EXPECT_THAT(kept({.3, .25, .15, .299, .001}), ElementsAre(0, 4));
  // x stays: .35 >= 1/3.
  EXPECT_THAT(kept({.22, .21, .35, .219, .001}), ElementsAre(2, 0, 4));
  // x goes: .3 < 1/3.
  EXPECT_THAT(kept({.25, .25, .3, .199, .001}), ElementsAre(0, 4));
}

// A cut may have dropped the end; a mask has the last word.
TEST(Infill, WhereNothingIsCertainItEnds) {
  const std::vector<double> flat{.13, .129, .128, .127, .126, .12, .12, .119, .001};
  const auto texts = texts_of({"a", "b", "c", "d", "e", "f", "g", "h", ""}, {8});
  {
    Row row(logs(flat));
    EXPECT_THAT(
        row.texts(texts).apply("top_k", {6}).apply("top_p", {0.99}).apply("infill", {1}).ids(),
        ElementsAre(8));
  }
  {
    auto logits = logs(flat);
    logits[8] = -kInf;
    Row row(logits);
    EXPECT_THAT(row.texts(texts).apply("infill", {1}).ids(), ElementsAre(0));
  }
  {
    Row row(logs(flat));
    row.texts(texts).allowed({0, 1, 2, 3, 4, 5, 6, 7});
    EXPECT_THAT(row.apply("allowed_token_ids").apply("infill", {1}).ids(), ElementsAre(0));
  }
  {
    Row row(logs(flat));  // after a cut too
    row.texts(texts).allowed({0, 1, 2, 3, 4, 5, 6, 7});
    EXPECT_THAT(row.apply("top_k", {6}).apply("allowed_token_ids").apply("infill", {1}).ids(),
                ElementsAre(0));
  }
}

// Bounded and without memory, at the size of a large vocabulary.
TEST(Infill, LooksAtFewTokensAndAllocatesNothing) {
  std::vector<std::string> texts;
  std::vector<float> logits;
  std::mt19937 rng(2);
  for (int i = 0; i < 150'000; ++i) {
    texts.push_back(std::string(1 + rng() % 300, 'a'));
    logits.push_back(static_cast<float>(rng() % 1000) / 1000);
  }
  SamplingParams params;
  ASSERT_TRUE(params.set("infill", 1).ok());
  params.set_texts(texts_of(texts, {7}));
  const Chain chain(params);
  EXPECT_FALSE(chain.on_device());
  SamplerState history = chain.begin({}, 8, logits.size());
  Scratch scratch(logits.size());
  const std::size_t before = allocation_count();
  const Choice choice =
      chain.sample(logits, history, {.seed = 1, .choice_index = 0, .position = 3}, scratch);
  EXPECT_EQ(allocation_count(), before);
  EXPECT_EQ(choice.status, LogitsStatus::kOk);
}

TEST(Infill, WantsTexts) {
  SamplingParams params;
  ASSERT_TRUE(params.set("infill", 1).ok());
  const Status status = params.check_vocab(10);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message.substr(0, 7), "infill:");
  params.set_texts(texts_of({"a", ""}, {1}));
  EXPECT_TRUE(params.check_vocab(10).ok());
  SamplingParams none;
  none.fill_from(params);
  EXPECT_EQ(none.lists().texts, params.lists().texts);
}

}  // namespace
}  // namespace vitrine
