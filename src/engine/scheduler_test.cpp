// The scheduler by itself: what it plans, and what it makes of results. No model.
#include "engine/scheduler.h"

#include <gtest/gtest.h>

namespace vitrine {
namespace {

constexpr int kPage = 16, kContext = 256;

struct Bench {
  explicit Bench(int sequences, int pages = 64, int step_tokens = 64) {
    plan.context = kContext, plan.sequences = sequences, plan.page_size = kPage;
    CacheGroup group{.spec = {1, 8}};
    group.pages = pages, group.pages_per_sequence = kContext / kPage;
    plan.groups.push_back(group);
    options.step_tokens = step_tokens;
    scheduler = std::make_unique<Scheduler>(plan, options);
  }

  Sequence* add(int prompt, int max_output, int forks = 0) {
    auto s = make(prompt, max_output);
    for (int i = 0; i < forks; ++i) s->forks.push_back(make(prompt, max_output));
    Sequence* out = s.get();
    scheduler->add(std::move(s));
    return out;
  }

  std::unique_ptr<Sequence> make(int prompt, int max_output) {
    auto s = std::make_unique<Sequence>();
    s->id = ++ids;
    s->rank = static_cast<std::int64_t>(ids);
    for (int i = 0; i < prompt; ++i) s->tokens.push_back(static_cast<int>(ids) * 1000 + i);
    s->prompt = s->prefill_end = prompt;
    s->max_output = max_output;
    s->ends = {2};
    s->tables.emplace_back(kPage, 0, kContext);
    s->stream = std::make_shared<TokenStream>();
    s->submitted = Clock::now();
    streams.push_back(s->stream);
    return s;
  }

  const Batch& next() {
    scheduler->plan(batch, Clock::now());
    scheduler->check_integrity();
    return batch;
  }
  // Every entry draws the same tokens, as many as it has rows that draw.
  void commit(const std::vector<std::int32_t>& tokens = {5}) {
    for (BatchEntry& e : batch.entries) {
      e.first_token = static_cast<int>(batch.drawn.size());
      e.tokens = std::min(e.draws, static_cast<int>(tokens.size()));
      for (int i = 0; i < e.tokens; ++i) batch.drawn.push_back({.id = tokens[i]});
    }
    scheduler->commit(batch, record);
    scheduler->check_integrity();
  }

  MemoryPlan plan;
  EngineOptions options;
  std::unique_ptr<Scheduler> scheduler;
  Batch batch;
  StepRecord record;
  std::uint64_t ids = 0;
  std::vector<std::shared_ptr<TokenStream>> streams;
};

std::vector<std::int32_t> tokens_of(TokenStream& stream) {
  std::vector<TokenEvent> events;
  std::vector<TokenLogprob> top;
  stream.read(events, top);
  std::vector<std::int32_t> out;
  for (const TokenEvent& e : events) out.push_back(e.token);
  return out;
}

TEST(Scheduler, PrefillsInChunksAndDrawsFromTheLastRowOnly) {
  Bench b(2);
  b.add(100, 3);
  const Batch& first = b.next();
  ASSERT_EQ(first.entries.size(), 1u);
  EXPECT_EQ(first.tokens, 64);
  EXPECT_TRUE(first.scores.empty());
  EXPECT_TRUE(first.entries[0].prefill);
  b.commit();
  const Batch& second = b.next();
  ASSERT_EQ(second.entries.size(), 1u);
  EXPECT_EQ(second.entries[0].first, 64);
  EXPECT_EQ(second.entries[0].count, 36);
  EXPECT_EQ(second.entries[0].draws, 1);
  ASSERT_EQ(second.scores.size(), 1u);
  EXPECT_EQ(second.scores[0].row, 35);
  EXPECT_EQ(second.scores[0].position, 99);
  EXPECT_TRUE(second.scores[0].draw);
  b.commit();
  EXPECT_EQ(b.next().entries[0].first, 100);
  EXPECT_FALSE(b.batch.entries[0].prefill);
}

TEST(Scheduler, DecodesBeforeItPrefillsWithinTheBudget) {
  Bench b(3);
  b.add(10, 20), b.add(10, 20);
  b.next(), b.commit();
  b.add(200, 5);
  const Batch& mixed = b.next();
  ASSERT_EQ(mixed.entries.size(), 3u);
  EXPECT_EQ(mixed.entries[0].count, 1);
  EXPECT_EQ(mixed.entries[1].count, 1);
  EXPECT_EQ(mixed.entries[2].count, 62);
  EXPECT_EQ(mixed.entries[2].row, 2);
  EXPECT_EQ(mixed.tokens, 64);
}

TEST(Scheduler, ListsTheRowsThatARequestAsksFor) {
  Bench b(1);
  auto s = b.make(20, 4);
  s->request.logit_positions = {3, 19};
  b.scheduler->add(std::move(s));
  const Batch& batch = b.next();
  ASSERT_EQ(batch.scores.size(), 2u);
  EXPECT_EQ(batch.scores[0].position, 3);
  EXPECT_TRUE(batch.scores[0].report);
  EXPECT_FALSE(batch.scores[0].draw);
  EXPECT_EQ(batch.scores[1].position, 19);
  EXPECT_TRUE(batch.scores[1].report);
  EXPECT_TRUE(batch.scores[1].draw);
}

TEST(Scheduler, ChoicesDrawFromTheSameRow) {
  Bench b(3);
  b.add(20, 4, 2);
  const Batch& batch = b.next();
  ASSERT_EQ(batch.entries.size(), 3u);
  ASSERT_EQ(batch.scores.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(batch.scores[i].row, 19);
    EXPECT_EQ(batch.scores[i].entry, i);
    EXPECT_EQ(batch.entries[i].draws, 1);
  }
  EXPECT_EQ(batch.tokens, 20);
  b.commit();
  EXPECT_EQ(b.next().entries.size(), 3u);
  EXPECT_EQ(b.batch.copies.size(), 2u) << "the last page, for all but its last holder";
  b.commit();
}

TEST(Scheduler, TakesAnyNumberOfTokens) {
  Bench b(1);
  Sequence* s = b.add(20, 10);
  b.next(), b.commit({7});
  s->draft = {8, 9, 10};
  const Batch& batch = b.next();
  ASSERT_EQ(batch.entries.size(), 1u);
  EXPECT_EQ(batch.entries[0].count, 4);
  EXPECT_EQ(batch.entries[0].draws, 4);
  EXPECT_EQ(s->scheduled, 24);
  b.commit({8, 9, 11});  // the third guess was wrong
  EXPECT_EQ(s->computed, 23);
  EXPECT_EQ(s->scheduled, 23);
  EXPECT_TRUE(s->draft.empty());
  EXPECT_EQ(tokens_of(*b.streams[0]), (std::vector<std::int32_t>{7, 8, 9, 11}));
  EXPECT_EQ(b.next().entries[0].first, 23);
}

TEST(Scheduler, GivesBackThePagesOfWrongGuesses) {
  Bench b(1);
  Sequence* s = b.add(31, 40);
  b.next(), b.commit({7});
  s->draft.assign(20, 8);
  b.next();
  EXPECT_EQ(s->tables[0].held(), 4);  // positions 0 to 51
  b.commit({9});
  EXPECT_EQ(s->computed, 32);
  EXPECT_EQ(s->tables[0].held(), 2);
  EXPECT_EQ(b.scheduler->cache().pool(0).used(), 2);
}

TEST(Scheduler, GuessesAreCutToWhatMayBeWritten) {
  Bench b(1, 64, 8);
  Sequence* s = b.add(8, 40);
  b.next(), b.commit({7});
  s->draft.assign(20, 8);
  EXPECT_EQ(b.next().entries[0].count, 8) << "the step holds 8 rows";
  b.commit({7});
  Bench end(1);
  s = end.add(20, 3);
  end.next(), end.commit({7});
  s->draft.assign(20, 8);
  EXPECT_EQ(end.next().entries[0].count, 2) << "two tokens of the output are left";
  end.commit({8, 8});
  EXPECT_EQ(end.streams[0]->wait().reason, FinishReason::kLength);
  EXPECT_EQ(tokens_of(*end.streams[0]).size(), 3u);
}

TEST(Scheduler, AnEndTokenAmongSeveralEndsTheText) {
  Bench b(1);
  Sequence* s = b.add(20, 10);
  b.next(), b.commit({7});
  s->draft = {8, 2, 9};
  b.next(), b.commit({8, 2, 9, 10});
  EXPECT_EQ(b.streams[0]->wait().reason, FinishReason::kStop);
  EXPECT_EQ(b.streams[0]->wait().stop_token, 2);
  EXPECT_EQ(tokens_of(*b.streams[0]), (std::vector<std::int32_t>{7, 8}));
  EXPECT_TRUE(b.next().empty());
  EXPECT_EQ(b.scheduler->cache().pool(0).used(), 0);
}

TEST(Scheduler, NoTokenAtAllIsAnErrorOrAnEnd) {
  Bench b(2);
  b.add(20, 10), b.add(20, 10);
  b.next();
  b.batch.entries[0].status = LogitsStatus::kNan;
  b.batch.entries[1].complete = true;
  b.commit({});
  EXPECT_EQ(b.streams[0]->wait().reason, FinishReason::kError);
  EXPECT_EQ(b.streams[1]->wait().reason, FinishReason::kStop);
}

TEST(Scheduler, PreemptsTheLastByRankWhenPagesRunOut) {
  Bench b(3, kContext / kPage);
  Sequence* first = b.add(60, 190);
  Sequence* second = b.add(60, 190);
  Sequence* third = b.add(60, 190);
  int steps = 0;
  while (third->account.preemptions == 0 && ++steps < 200) b.next(), b.commit({7});
  EXPECT_EQ(third->account.preemptions, 1);
  EXPECT_EQ(second->account.preemptions, 0);
  EXPECT_EQ(third->slot, -1);
  EXPECT_EQ(third->tables[0].held(), 0);
  EXPECT_EQ(third->prefill_end, static_cast<int>(third->tokens.size())) << "its output stays";
  while (second->account.preemptions == 0 && ++steps < 400) b.next(), b.commit({7});
  EXPECT_EQ(second->account.preemptions, 1);
  EXPECT_EQ(first->account.preemptions, 0);
}

TEST(Scheduler, DoesNotPreemptWhatIsInFlight) {
  Bench b(2, kContext / kPage);
  Sequence* first = b.add(120, 100);
  Sequence* second = b.add(120, 100);
  while (first->scheduled < 127 || second->scheduled < 127) b.next(), b.commit({7});
  b.next();  // position 127: the last that fits the pages of both
  Batch late;
  b.scheduler->plan(late, Clock::now());
  EXPECT_TRUE(late.empty()) << "position 128 needs a page, and both sequences are in flight";
  EXPECT_TRUE(b.scheduler->settle());
  EXPECT_EQ(second->account.preemptions, 0);
  b.commit({7});
  b.next();
  EXPECT_EQ(second->account.preemptions, 1);
  ASSERT_EQ(b.batch.entries.size(), 1u);
  EXPECT_EQ(b.batch.entries[0].sequence, first);
}

}  // namespace
}  // namespace vitrine
