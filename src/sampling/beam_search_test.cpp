#include "sampling/beam_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "sampling/chain.h"

namespace vitrine {
namespace {

using Text = std::vector<std::int32_t>;

// A language: what may follow a text, with which log probability. In halves, so that many sums are equal and every
// order of adding gives the same.
struct Language {
  int vocab;
  std::uint64_t seed;
  float operator()(const Text& text, std::int32_t token) const {
    std::uint64_t h = seed;
    for (std::int32_t t : text) h = (h ^ static_cast<std::uint64_t>(t + 7)) * 0x9E3779B97F4A7C15u;
    h = (h ^ static_cast<std::uint64_t>(token + 1)) * 0xD1B54A32D192ED03u;
    return -0.5f * static_cast<float>((h >> 40) % 9);
  }
};

struct Setting {
  BeamOptions options;
  Language language;
  Text ends;
  int longest;
  bool is_end(std::int32_t t) const { return std::find(ends.begin(), ends.end(), t) != ends.end(); }
};

struct Scored {
  double score;
  Text tokens;
};

// HF's loop as it is written there: a place that is empty has a score of -1e9, and so has a beam before the first
// token, all but one.
std::vector<Scored> naive(const Setting& s) {
  constexpr double kNone = -1e9;
  const int B = s.options.beams, V = s.language.vocab;
  const double penalty = s.options.length_penalty;
  std::vector<Scored> running(B, {kNone, {}}), places(B, {kNone, {}});
  running[0].score = 0;
  std::vector<bool> sent(B, false);
  for (int length = 0;; ++length) {
    std::vector<Scored> all;
    for (const Scored& r : running)
      for (int v = 0; v < V; ++v) {
        all.push_back({r.score + s.language(r.tokens, v), r.tokens});
        all.back().tokens.push_back(v);
      }
    const auto better = [](const Scored& a, const Scored& b) { return a.score > b.score; };
    std::stable_sort(all.begin(), all.end(), better);
    all.resize(std::min<std::size_t>(all.size(), std::max<std::size_t>(2, 1 + s.ends.size()) * B));
    const bool longest = length + 1 >= s.longest;
    std::vector<Scored> next, merged = places;
    std::vector<bool> merged_sent = sent;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool hit = longest || s.is_end(all[i].tokens.back());
      next.push_back({all[i].score + (hit ? kNone : 0), all[i].tokens});
      if (!hit || static_cast<int>(i) >= B) continue;
      merged.push_back({all[i].score / std::pow(length + 1, penalty), all[i].tokens});
      merged_sent.push_back(true);
    }
    std::vector<int> order(merged.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return merged[a].score > merged[b].score; });
    for (int i = 0; i < B; ++i) places[i] = merged[order[i]], sent[i] = merged_sent[order[i]];
    std::stable_sort(next.begin(), next.end(), better);
    next.resize(B);
    running = next;
    const bool full = std::all_of(sent.begin(), sent.end(), [](bool b) { return b; });
    const bool never = s.options.early_stopping == EarlyStopping::kNever && penalty > 0;
    const double possible = running[0].score / std::pow(never ? s.longest : length + 1, penalty);
    const bool hope = !full || possible > places[B - 1].score;
    if (longest || !hope || (full && s.options.early_stopping == EarlyStopping::kTrue)) break;
  }
  places.resize(static_cast<std::size_t>(s.options.returned));
  return places;
}

// By BeamSearch, as a caller does it: live texts are somewhere, and rows tell only the best continuations.
std::vector<Scored> searched(const Setting& s, int* steps = nullptr) {
  BeamSearch search(s.options, s.longest);
  std::vector<Text> live(search.live().size());
  std::size_t agreed = 0;
  for (int guard = 0; !search.done(); ++guard) {
    EXPECT_LT(guard, s.longest);
    std::vector<std::vector<BeamCandidate>> candidates;
    for (const Text& text : live) {
      std::vector<BeamCandidate> all;
      for (int v = 0; v < s.language.vocab; ++v)
        all.push_back({v, s.language(text, v), s.is_end(v)});
      std::stable_sort(all.begin(), all.end(), [](const BeamCandidate& a, const BeamCandidate& b) {
        return a.logprob > b.logprob;
      });
      auto& kept = candidates.emplace_back();
      const int most = s.options.candidates();
      int rank = 0, going = 0;
      for (const BeamCandidate& c : all) {
        if (c.ends ? rank < most : going < most) kept.push_back(c);
        ++rank, going += !c.ends;
      }
    }
    std::vector<BeamSearch::Row> rows;
    for (std::size_t i = 0; i < live.size(); ++i) rows.push_back({candidates[i], live[i]});
    search.step(rows);
    std::vector<Text> next;
    for (const auto& child : search.live()) {
      next.push_back(live[child.parent]);
      next.back().push_back(child.token);
    }
    live.swap(next);
    if (steps != nullptr) ++*steps;
    // Whatever all texts that may be returned begin with never changes.
    if (search.done()) break;
    Text common = live[0];
    const auto cut = [&](const Text& t) {
      common.erase(std::mismatch(common.begin(), common.end(), t.begin(), t.end()).first,
                   common.end());
    };
    for (const Text& t : live) cut(t);
    for (const auto* f : search.best()) cut(f->tokens);
    EXPECT_GE(common.size(), agreed);
    agreed = common.size();
  }
  std::vector<Scored> out;
  for (const auto* f : search.best()) out.push_back({f->score, f->tokens});
  return out;
}

void expect_equal(const std::vector<Scored>& is, const std::vector<Scored>& wanted) {
  ASSERT_EQ(is.size(), wanted.size());
  for (std::size_t i = 0; i < is.size(); ++i) {
    EXPECT_EQ(is[i].tokens, wanted[i].tokens) << i;
    EXPECT_NEAR(is[i].score, wanted[i].score, 1e-6) << i;
  }
}

TEST(BeamSearch, IsHFsLoopWithTiesByBeamAndId) {
  std::mt19937 rng(1);
  std::map<EarlyStopping, int> early;
  for (int i = 0; i < 4000; ++i) {
    Setting s;
    const int beams = 1 + static_cast<int>(rng() % 6), ends = static_cast<int>(rng() % 4);
    s.options = {.beams = beams,
                 .returned = 1 + static_cast<int>(rng() % beams),
                 .length_penalty = static_cast<double>(rng() % 7) * 0.5 - 1,
                 .early_stopping = static_cast<EarlyStopping>(rng() % 3)};
    s.language = {.vocab = beams + ends + static_cast<int>(rng() % 6) + 1, .seed = rng()};
    while (static_cast<int>(s.ends.size()) < ends)
      if (const auto t = static_cast<std::int32_t>(rng() % s.language.vocab); !s.is_end(t))
        s.ends.push_back(t);
    s.longest = 1 + static_cast<int>(rng() % 9);
    SCOPED_TRACE(fmt::format("case {}", i));
    int steps = 0;
    expect_equal(searched(s, &steps), naive(s));
    early[s.options.early_stopping] += steps < s.longest;
    if (HasFailure()) return;
  }
  for (const auto& [kind, count] : early) EXPECT_GT(count, 100) << static_cast<int>(kind);
}

// With a penalty that forbids what the group before took, groups of one beam take different first tokens.
TEST(BeamSearch, GroupsPayForWhatEarlierOnesTook) {
  Setting s{.options = {.beams = 3, .returned = 3, .groups = 3, .diversity_penalty = 100},
            .language = {.vocab = 8, .seed = 5},
            .ends = {},
            .longest = 1};
  s.longest = 4;
  const auto found = searched(s);
  ASSERT_EQ(found.size(), 3u);
  for (int at = 0; at < 3; ++at)
    for (int a = 0; a < 3; ++a)
      for (int b = 0; b < a; ++b) EXPECT_NE(found[a].tokens[at], found[b].tokens[at]);
  // Without one, groups are separate searches that find the same.
  s.options.diversity_penalty = 0;
  s.options.beams = 4, s.options.groups = 2, s.options.returned = 4;
  const auto twice = searched(s);
  Setting alone = s;
  alone.options = {.beams = 2, .returned = 2};
  const auto once = searched(alone);
  ASSERT_EQ(twice.size(), 4u);
  std::multiset<std::pair<double, Text>> a, b;
  for (const auto& f : twice) a.emplace(f.score, f.tokens);
  for (const auto& f : once) b.emplace(f.score, f.tokens), b.emplace(f.score, f.tokens);
  EXPECT_EQ(a, b);
}

// Groups against a search that is written down as it is defined: one after the other, each on its own.
TEST(BeamSearch, GroupsAreSearchesThatKnowOfEarlierOnes) {
  std::mt19937 rng(3);
  for (int i = 0; i < 500; ++i) {
    Setting s;
    const int groups = 2 + static_cast<int>(rng() % 2), size = 1 + static_cast<int>(rng() % 3);
    s.options = {.beams = groups * size,
                 .returned = groups * size,
                 .groups = groups,
                 .diversity_penalty = 0.5 * static_cast<double>(rng() % 4)};
    s.language = {.vocab = 4 + groups * size + static_cast<int>(rng() % 4), .seed = rng()};
    s.longest = 2 + static_cast<int>(rng() % 5);  // no end tokens: all end there
    std::vector<std::vector<Scored>> live(groups, {{0, {}}}), ended(groups);
    for (int length = 0; length < s.longest; ++length) {
      std::map<std::int32_t, int> taken;
      for (int g = 0; g < groups; ++g) {
        std::vector<Scored> all;
        for (const Scored& r : live[g])
          for (int v = 0; v < s.language.vocab; ++v) {
            const auto found = taken.find(v);
            const int times = found == taken.end() ? 0 : found->second;
            all.push_back({r.score + s.language(r.tokens, v) - s.options.diversity_penalty * times,
                           r.tokens});
            all.back().tokens.push_back(v);
          }
        std::stable_sort(all.begin(), all.end(),
                         [](const Scored& a, const Scored& b) { return a.score > b.score; });
        all.resize(static_cast<std::size_t>(size));
        live[g] = all;
        for (const Scored& a : all) ++taken[a.tokens.back()];
      }
    }
    std::vector<Scored> wanted;
    for (auto& group : live)
      for (Scored& r : group) wanted.push_back({r.score / s.longest, r.tokens});
    std::stable_sort(wanted.begin(), wanted.end(),
                     [](const Scored& a, const Scored& b) { return a.score > b.score; });
    SCOPED_TRACE(fmt::format("case {}", i));
    expect_equal(searched(s), wanted);
    if (HasFailure()) return;
  }
}

TEST(BeamSearch, ATextMayBeCompleteWithoutAToken) {
  BeamSearch search({.beams = 2, .returned = 2}, 8);
  const BeamCandidate first[] = {{3, -1, false}, {4, -2, false}};
  search.step(std::vector<BeamSearch::Row>{{first, {}}});
  ASSERT_EQ(search.live().size(), 2u);
  const Text a{3}, b{4};
  const BeamCandidate complete[] = {{-1, 0, true}};
  search.step(
      std::vector<BeamSearch::Row>{{complete, a}, {{}, b}});  // the other has no continuation
  EXPECT_TRUE(search.done());
  ASSERT_EQ(search.best().size(), 1u);
  EXPECT_EQ(search.best()[0]->tokens, a);
  EXPECT_EQ(search.best()[0]->end_token, -1);
  EXPECT_TRUE(search.best()[0]->ended);
  EXPECT_EQ(search.best()[0]->score, -1);
}

TEST(BeamSearch, OptionsAreCheckedByName) {
  const auto message = [](BeamOptions o) {
    const Status s = o.check();
    return s.ok() ? std::string() : s.error().message;
  };
  EXPECT_EQ(message({.beams = 4, .returned = 4}), "");
  EXPECT_EQ(message({.beams = 0}), "beams: found 0, allowed 1 to 128");
  EXPECT_EQ(message({.beams = 129}), "beams: found 129, allowed 1 to 128");
  EXPECT_EQ(message({.beams = 2, .returned = 3}), "num_return: found 3, allowed 1 to 2");
  EXPECT_EQ(message({.beams = 4, .groups = 3}),
            "beam_groups: found 3, allowed what divides beams, which is 4");
  EXPECT_EQ(message({.beams = 4, .length_penalty = NAN}),
            "length_penalty: found nan, allowed -100 to 100");
  EXPECT_EQ(message({.beams = 4, .groups = 2, .diversity_penalty = -1}),
            "diversity_penalty: found -1, allowed 0 to 100");
  EXPECT_EQ(message({.beams = 4, .diversity_penalty = 1}),
            "diversity_penalty: found 1, allowed only 0 with one group of beams");
}

// ---- rows

TEST(Continuations, AreTheBestLogProbabilitiesAfterTheTransforms) {
  std::mt19937 rng(4);
  std::normal_distribution<float> normal(0, 2);
  constexpr int V = 40;
  Scratch scratch(V);
  for (int i = 0; i < 200; ++i) {
    std::vector<float> logits(V);
    for (float& x : logits) x = std::round(normal(rng));  // many ties
    SamplingParams params;
    ASSERT_TRUE(params.set("repetition_penalty", i % 2 ? 1.3 : 1).ok());
    ASSERT_TRUE(params.set_logit_bias({{5, 1.5f}, {6, -3}}).ok());
    const Chain chain(params);
    const Text prompt{1, 2, 7}, ends{2, 9, 30};
    SamplerState history = chain.begin(prompt, 8, V);
    chain.take(history, 9, kNoShare);
    const std::int32_t banned[] = {0, 11};
    const DrawSpec spec{.seed = 1, .choice_index = 0, .position = 4, .banned = banned};
    std::vector<BeamCandidate> found;
    constexpr std::size_t kMost = 4;
    ASSERT_EQ(chain.continuations(logits, history, spec, ends, kMost, scratch, found),
              LogitsStatus::kOk);
    double sum = 0;
    for (float x : logits) sum += std::exp(static_cast<double>(x));
    struct Item {
      double logprob;
      int id;
    };
    std::vector<Item> items;
    for (int id = 0; id < V; ++id) {
      if (id == 0 || id == 11) continue;
      double x = logits[id] - std::log(sum);
      if (id == 5) x += 1.5;
      if (id == 6) x -= 3;
      const bool seen = id == 1 || id == 2 || id == 7 || id == 9;
      if (i % 2 && seen) x = x < 0 ? x * 1.3 : x / 1.3;
      items.push_back({x, id});
    }
    // Ties of the model stay ties; what was edited lies elsewhere.
    std::stable_sort(items.begin(), items.end(),
                     [](const Item& a, const Item& b) { return a.logprob > b.logprob + 1e-4; });
    std::vector<int> wanted;
    std::size_t going = 0;
    for (std::size_t rank = 0; rank < items.size(); ++rank) {
      const bool end = std::find(ends.begin(), ends.end(), items[rank].id) != ends.end();
      if (end ? rank < kMost : going < kMost) wanted.push_back(items[rank].id);
      going += !end;
    }
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t k = 0; k < found.size(); ++k) {
      EXPECT_EQ(found[k].token, wanted[k]);
      const auto at = std::find_if(items.begin(), items.end(),
                                   [&](const Item& x) { return x.id == found[k].token; });
      EXPECT_NEAR(found[k].logprob, at->logprob, 2e-5);
      EXPECT_EQ(found[k].ends, std::find(ends.begin(), ends.end(), found[k].token) != ends.end());
    }
  }
}

TEST(Continuations, OfAForcedTokenAndOfNothing) {
  const Chain chain{SamplingParams{}};
  SamplerState history;
  Scratch scratch(4);
  std::vector<BeamCandidate> found;
  const std::vector<float> logits{0, 0, 0, 0};
  DrawSpec spec{.seed = 1, .choice_index = 0, .position = 0};
  spec.forced = 2;
  const std::int32_t ends[] = {2};
  EXPECT_EQ(chain.continuations(logits, history, spec, ends, 3, scratch, found), LogitsStatus::kOk);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].token, 2);
  EXPECT_TRUE(found[0].ends);
  EXPECT_NEAR(found[0].logprob, -std::log(4.0), 1e-6);
  const std::vector<std::uint64_t> none{0};
  spec.forced = -1, spec.allowed = &none;
  EXPECT_EQ(chain.continuations(logits, history, spec, ends, 3, scratch, found),
            LogitsStatus::kMasked);
  EXPECT_TRUE(found.empty());
  const std::vector<float> nan{0, NAN, 0, 0};
  EXPECT_EQ(chain.continuations(nan, history, spec, ends, 3, scratch, found), LogitsStatus::kNan);
}

TEST(BeamParams, OnlySamplersThatNeitherDrawNorCut) {
  SamplingParams p;
  EXPECT_TRUE(p.check_beams().ok());
  ASSERT_TRUE(p.set("temperature", 0).ok());
  ASSERT_TRUE(p.set("repetition_penalty", 1.1).ok());
  ASSERT_TRUE(p.set("no_repeat_ngram_size", 3).ok());
  EXPECT_TRUE(p.check_beams().ok());
  EXPECT_EQ(p.for_beams().get("temperature"), 1);
  EXPECT_EQ(p.for_beams().get("repetition_penalty"), 1.1);
  for (const auto& [name, value] :
       std::initializer_list<std::pair<const char*, double>>{{"temperature", 0.7},
                                                             {"top_k", 5},
                                                             {"top_p", 0.5},
                                                             {"min_p", 0.1},
                                                             {"mirostat", 2},
                                                             {"xtc_probability", 0.5},
                                                             {"typical_p", 0.5}}) {
    SamplingParams other;
    ASSERT_TRUE(other.set(name, value).ok()) << name;
    const Status status = other.check_beams();
    ASSERT_FALSE(status.ok()) << name;
    EXPECT_EQ(status.error().message.rfind(std::string(name) + ": found", 0), 0u)
        << status.error().message;
    EXPECT_TRUE(other.for_beams().check_beams().ok());
  }
}

}  // namespace
}  // namespace vitrine
