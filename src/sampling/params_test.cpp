#include "sampling/params.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <set>

#include "sampling/presets.h"

namespace vitrine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<std::string> names(const std::vector<const SamplerDef*>& defs) {
  std::vector<std::string> out;
  for (const auto* def : defs) out.push_back(def->name);
  return out;
}

TEST(SamplerTable, DefaultOrderIsTheDocumentedOne) {
  EXPECT_THAT(names(SamplingParams().order()),
              ElementsAre("logit_bias", "allowed_token_ids", "bad_words", "no_repeat_ngram",
                          "repetition", "frequency_presence", "dry", "temperature", "top_n_sigma",
                          "top_h", "top_k", "top_p", "min_p", "typical", "epsilon_cutoff",
                          "eta_cutoff", "xtc", "infill", "adaptive_p", "mirostat"));
}

TEST(SamplerTable, IsConsistent) {
  EXPECT_EQ(ordered_samplers().size(), all_samplers().size());
  std::set<std::string> seen;
  std::set<int> orders;
  for (const SamplerDef* def : all_samplers()) {
    EXPECT_TRUE(seen.insert(def->name).second) << def->name;
    EXPECT_TRUE(orders.insert(def->order).second) << def->name;
    EXPECT_EQ(find_sampler(def->name), def);
    EXPECT_LE(def->params.size(), kMaxParamsPerSampler);
  }
  seen.clear();
  for (const Param* p : all_params()) {
    EXPECT_TRUE(seen.insert(p->name).second) << p->name;
    EXPECT_TRUE(SamplingParams().set(p->name, p->neutral).ok()) << p->name;
    EXPECT_TRUE(SamplingParams().set(p->name, p->max).ok()) << p->name;
    EXPECT_EQ(SamplingParams().set(p->name, p->min).ok(), !p->min_excluded) << p->name;
    EXPECT_EQ(SamplingParams().get(p->name), p->neutral);
    EXPECT_GT(std::string(p->help).size(), 0u);
  }
}

// docs/decoding.md has a row for each sampler, with its parameters and their defaults.
TEST(SamplerTable, IsDocumented) {
  std::ifstream file(VT_FIXTURES "/../../docs/decoding.md");
  std::string line, text;
  std::map<std::string, std::string> rows;
  while (std::getline(file, line))
    if (line.starts_with("| `")) rows[line.substr(3, line.find('`', 3) - 3)] = line;
  for (const SamplerDef* def : all_samplers()) {
    ASSERT_TRUE(rows.contains(def->name)) << def->name;
    for (const Param& p : def->params)
      EXPECT_THAT(rows[def->name], HasSubstr(fmt::format("`{}` ({})", p.name, p.neutral)));
  }
}

TEST(SamplingParams, RefusesNonFiniteAndOutOfRangeForEveryParameter) {
  for (const Param* p : all_params()) {
    for (const double bad : {kNan, kInf, -kInf, p->max + 1, p->min - 1, -1e300, 1e300}) {
      SamplingParams params;
      const Status status = params.set(p->name, bad);
      ASSERT_FALSE(status.ok()) << p->name << " " << bad;
      EXPECT_EQ(status.error().code, ErrorCode::kInvalid);
      EXPECT_THAT(status.error().message, HasSubstr(p->name));
      EXPECT_EQ(params.get(p->name), p->neutral);
    }
  }
}

TEST(SamplingParams, RefusalTable) {
  const struct {
    const char* name;
    double value;
    const char* message;
  } cases[] = {
      {"temperature", 3.5, "temperature: found 3.5, allowed 0 to 2"},
      {"temperature", -0.1, "temperature: found -0.1, allowed 0 to 2"},
      {"temperature", kNan, "temperature: found nan, allowed 0 to 2"},
      {"top_p", 0, "top_p: found 0, allowed above 0 and up to 1"},
      {"typical_p", 0, "typical_p: found 0, allowed above 0 and up to 1"},
      {"min_p", 1.01, "min_p: found 1.01, allowed 0 to 1"},
      {"repetition_penalty", 0, "repetition_penalty: found 0, allowed above 0 and up to 10"},
      {"frequency_penalty", 2.5, "frequency_penalty: found 2.5, allowed -2 to 2"},
      {"presence_penalty", -2.5, "presence_penalty: found -2.5, allowed -2 to 2"},
      {"top_k", 1.5, "top_k: found 1.5, allowed whole numbers -1 to 2147483647"},
      {"top_k", -2, "top_k: found -2, allowed whole numbers -1 to 2147483647"},
      {"topk", 1, "unknown sampling parameter 'topk', known: "},
  };
  for (const auto& c : cases) {
    const Status status = SamplingParams().set(c.name, c.value);
    ASSERT_FALSE(status.ok()) << c.name;
    EXPECT_THAT(status.error().message, StartsWith(c.message));
  }
}

TEST(SamplingParams, AcceptsTheEdges) {
  SamplingParams params;
  for (const auto& [name, value] : {std::pair{"temperature", 0.0},
                                    {"temperature", 2.0},
                                    {"temperature", 5e-324},
                                    {"top_k", -1.0},
                                    {"top_k", 0.0},
                                    {"top_p", 1e-300},
                                    {"min_p", 0.0},
                                    {"min_p", 1.0},
                                    {"repetition_penalty", 5e-324},
                                    {"frequency_penalty", -2.0}}) {
    EXPECT_TRUE(params.set(name, value).ok()) << name << " " << value;
    EXPECT_EQ(params.get(name), value);
  }
}

TEST(SamplingParams, OrderOfARequest) {
  SamplingParams params;
  const std::string some[] = {"top_k", "temperature"};
  ASSERT_TRUE(params.set_order(some).ok());
  EXPECT_THAT(names(params.order()),
              ElementsAre("logit_bias", "allowed_token_ids", "bad_words", "top_k", "temperature"));

  // Behind a cut a constraint could find only tokens that it forbids.
  const std::string late_bias[] = {"top_k", "logit_bias"};
  ASSERT_TRUE(params.set_order(late_bias).ok());
  EXPECT_THAT(names(params.order()),
              ElementsAre("logit_bias", "allowed_token_ids", "bad_words", "top_k"));

  ASSERT_TRUE(params.set_order({}).ok());
  EXPECT_THAT(names(params.order()), ElementsAre("logit_bias", "allowed_token_ids", "bad_words"));
}

TEST(SamplingParams, RefusesUnknownAndRepeatedTransforms) {
  SamplingParams params;
  const std::string unknown[] = {"top_k", "beauty"};
  const Status status = params.set_order(unknown);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message,
              StartsWith("samplers: unknown name 'beauty', known: logit_bias, "));
  const std::string twice[] = {"top_k", "top_p", "top_k"};
  const Status repeated = params.set_order(twice);
  ASSERT_FALSE(repeated.ok());
  EXPECT_THAT(repeated.error().message, HasSubstr("'top_k' twice"));
  EXPECT_EQ(params.order().size(), all_samplers().size());
}

TEST(SamplingParams, LogitBias) {
  SamplingParams params;
  ASSERT_TRUE(params.set_logit_bias({{7, -100}, {3, 100}}).ok());
  EXPECT_EQ(params.logit_bias().find(3)->bias, 100);
  EXPECT_EQ(params.logit_bias().find(4), nullptr);
  EXPECT_TRUE(params.check_vocab(8).ok());
  const Status outside = params.check_vocab(7);
  ASSERT_FALSE(outside.ok());
  EXPECT_EQ(outside.error().message, "logit_bias: found token 7, allowed 0 to 6");

  const float bad[] = {100.5f, -101, static_cast<float>(kNan), static_cast<float>(kInf)};
  for (const float bias : bad) EXPECT_FALSE(params.set_logit_bias({{1, bias}}).ok()) << bias;
  EXPECT_FALSE(params.set_logit_bias({{-1, 0}}).ok());
  EXPECT_FALSE(params.set_logit_bias({{1, 0}, {2, 0}, {1, 3}}).ok());
  std::vector<LogitBias> many;
  for (int i = 0; i < 1025; ++i) many.push_back({i, 1});
  EXPECT_FALSE(params.set_logit_bias(many).ok());
  many.pop_back();
  EXPECT_TRUE(params.set_logit_bias(many).ok());
}

TEST(SamplingParams, TokenLists) {
  SamplingParams params, lower;
  ASSERT_TRUE(params.set_allowed_ids({7, 3, 7}).ok());
  ASSERT_TRUE(params.set_bad_words({{1, 9}, {2}}).ok());
  ASSERT_TRUE(lower.set_allowed_ids({1}).ok());
  lower.set_breakers({5, 4});
  const TokenLists lists = resolve({&params, &lower}).lists();
  EXPECT_THAT(*lists.allowed, ElementsAre(3, 7));
  EXPECT_THAT(*lists.breakers, ElementsAre(4, 5));
  EXPECT_EQ(lists.bad_words->size(), 2u);
  EXPECT_TRUE(params.check_vocab(10).ok());
  EXPECT_EQ(params.check_vocab(9).error().message, "bad_words: found token 9, allowed 0 to 8");
  EXPECT_EQ(params.check_vocab(7).error().message,
            "allowed_token_ids: found token 7, allowed 0 to 6");

  EXPECT_FALSE(params.set_allowed_ids({1, -1}).ok());
  EXPECT_FALSE(params.set_allowed_ids(std::vector<std::int32_t>(65537, 1)).ok());
  EXPECT_FALSE(params.set_bad_words({{}}).ok());
  EXPECT_FALSE(params.set_bad_words({{1, -1}}).ok());
  EXPECT_FALSE(params.set_bad_words({std::vector<std::int32_t>(65, 1)}).ok());
  EXPECT_FALSE(params.set_bad_words({1025, {1}}).ok());
}

TEST(SamplingParams, StrongerLayersWin) {
  SamplingParams request, flags, config;
  const std::string order[] = {"top_k"};
  ASSERT_TRUE(request.set("temperature", 1).ok());  // set to the neutral value: still set
  ASSERT_TRUE(flags.set("temperature", 0.5).ok());
  ASSERT_TRUE(flags.set("top_k", 5).ok());
  ASSERT_TRUE(flags.set_logit_bias({{1, 2}}).ok());
  flags.set_seed(11);
  ASSERT_TRUE(config.set("top_k", 50).ok());
  ASSERT_TRUE(config.set("top_p", 0.8).ok());
  ASSERT_TRUE(config.set_order(order).ok());
  config.set_seed(12);

  const SamplingParams all = resolve({&request, &flags, &config});
  EXPECT_EQ(all.get("temperature"), 1);
  EXPECT_EQ(all.get("top_k"), 5);
  EXPECT_EQ(all.get("top_p"), 0.8);
  EXPECT_EQ(all.get("min_p"), 0);
  EXPECT_EQ(all.seed(), 11u);
  EXPECT_EQ(all.logit_bias().entries().size(), 1u);
  EXPECT_THAT(names(all.order()),
              ElementsAre("logit_bias", "allowed_token_ids", "bad_words", "top_k"));
  EXPECT_FALSE(resolve({}).seed().has_value());
}

TEST(Presets, AreValidLayers) {
  std::vector<std::string> known;
  for (const Preset& preset : all_presets()) {
    known.push_back(preset.name);
    const auto params = preset_params(preset.name);
    ASSERT_TRUE(params.ok()) << params.error().message;
    for (const PresetValue& v : preset.values) EXPECT_EQ(params->get(v.param), v.value);
    // A server's defaults show through in penalties and lists only.
    SamplingParams lower;
    std::map<std::string, double> expected;
    for (const SamplerDef* def : all_samplers())
      for (const Param& p : def->params) {
        const double other = p.neutral == p.max ? p.min + (p.max - p.min) / 2 : p.max;
        EXPECT_TRUE(lower.set(p.name, p.integer ? std::floor(other) : other).ok()) << p.name;
        if (def->cuts || def->replaces_cuts || def->state != nullptr) expected[p.name] = p.neutral;
      }
    expected["dynatemp_range"] = 0;
    for (const PresetValue& v : preset.values) expected[v.param] = v.value;
    const SamplingParams both = resolve({&*params, &lower});
    for (const auto& [name, value] : expected) EXPECT_EQ(both.get(name), value) << name;
  }
  EXPECT_THAT(known, ElementsAre("code", "factual", "chat", "creative", "brainstorm", "infill"));
  const auto unknown = preset_params("poetry");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().message,
            "unknown preset 'poetry', known: code, factual, chat, creative, brainstorm, infill");
}

}  // namespace
}  // namespace vitrine
