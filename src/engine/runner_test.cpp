// The runner and the scorer on a model that computes nothing: what the model is given, and what is
// made of its logits.
#include "engine/runner.h"

#include <gtest/gtest.h>

namespace vitrine {
namespace {

constexpr int kVocab = 50, kDim = 3, kPage = 16, kContext = 64, kStepTokens = 32;

// The token that the fake model writes after `id` at `position`.
int next_token(int id, int position) { return (id * 7 + position * 3 + 1) % kVocab; }

// Keeps its last input. A row's hidden state is its id and its position; its best token follows.
class FakeModel final : public Model {
 public:
  FakeModel() : Model({.arch = "fake", .layers = 1, .dim = kDim, .heads = 1, .vocab = kVocab}) {}
  CacheSpec cache_spec(int) const override { return {1, 8}; }
  void forward(Ops&, const ModelInput& in, Tensor hidden) override {
    auto copy = [](Tensor t) {
      return std::vector<std::int32_t>(t.i32(), t.i32() + t.shape.elements());
    };
    ids = copy(in.ids), positions = copy(in.positions), out_rows = copy(in.out_rows);
    const KvIndex& index = in.groups[in.group_of[0]];
    offsets = copy(index.row_offsets), slots = copy(index.slots), table = copy(index.block_table);
    table_width = static_cast<int>(index.block_table.dim(1));
    for (std::size_t m = 0; m < out_rows.size(); ++m) {
      float* row = hidden.f32() + m * kDim;
      row[0] = static_cast<float>(ids[out_rows[m]]);
      row[1] = static_cast<float>(positions[out_rows[m]]);
      row[2] = 1;
    }
  }
  void head(Ops&, Tensor logits, Tensor hidden) override {
    for (std::int64_t m = 0; m < logits.dim(0); ++m) {
      const float* row = hidden.f32() + m * kDim;
      int best = next_token(static_cast<int>(row[0]), static_cast<int>(row[1]));
      for (int v = 0; v < kVocab; ++v)
        logits.f32()[m * kVocab + v] = -static_cast<float>(std::abs(v - best));
    }
  }

  std::vector<std::int32_t> ids, positions, out_rows, offsets, slots, table;
  int table_width = 0;
};

struct Bench {
  Bench() {
    backend = std::move(create_backend("ref", {})).value();
    plan.context = kContext, plan.sequences = 4, plan.page_size = kPage;
    CacheGroup group{.spec = model.cache_spec(0), .layers = {0}};
    group.pages = 16, group.pages_per_sequence = kContext / kPage, group.page_bytes = 4096;
    plan.groups.push_back(group);
    plan.group_of = {0};
    pool = std::make_unique<PagePool>(16, kPage);
    scorer = std::move(Scorer::create(model, *backend, 4, kStepTokens)).value();
    runner = std::move(Runner::create(model, *backend, *scorer, plan, kStepTokens)).value();
  }

  // A greedy sequence with pages for `length` positions.
  Sequence& sequence(std::vector<std::int32_t> tokens, int length) {
    auto s = std::make_unique<Sequence>();
    s->slot = static_cast<int>(sequences.size());
    s->tokens = std::move(tokens);
    s->prompt = s->prefill_end = static_cast<int>(s->tokens.size());
    s->max_output = kContext - s->prompt;
    s->tables.emplace_back(kPage, 0, kContext);
    s->tables[0].grow(*pool, 0, length);
    SamplingParams greedy;
    EXPECT_TRUE(greedy.set("temperature", 0).ok());
    s->chain = std::make_unique<Chain>(greedy);
    s->stream = std::make_shared<TokenStream>();
    sequences.push_back(std::move(s));
    return *sequences.back();
  }

  // Rows [first, first + count) of a sequence, of which the last `draws` draw.
  void add(Sequence& s, int first, int count, int draws) {
    const int entry = static_cast<int>(batch.entries.size());
    batch.entries.push_back(
        {.sequence = &s, .first = first, .count = count, .row = batch.tokens, .draws = draws});
    for (int i = count - draws; i < count; ++i)
      batch.scores.push_back({entry, batch.tokens + i, first + i, true, false});
    batch.tokens += count;
  }

  void run() {
    runner->run(batch, 0, false);
    runner->wait(batch);
    scorer->collect(batch);
  }
  std::vector<std::int32_t> drawn(int entry) const {
    std::vector<std::int32_t> out;
    const BatchEntry& e = batch.entries[entry];
    for (int i = 0; i < e.tokens; ++i) out.push_back(batch.drawn[e.first_token + i].id);
    return out;
  }

  FakeModel model;
  std::unique_ptr<Backend> backend;
  MemoryPlan plan;
  std::unique_ptr<PagePool> pool;
  std::vector<std::unique_ptr<Sequence>> sequences;
  std::unique_ptr<Scorer> scorer;
  std::unique_ptr<Runner> runner;
  Batch batch;
};

using Ints = std::vector<std::int32_t>;

TEST(Runner, LaysOutARaggedBatch) {
  Bench b;
  Sequence& a = b.sequence({10, 11, 12, 13, 14}, 5);
  Sequence& c = b.sequence({20, 21, 22}, 18);
  b.add(a, 1, 4, 1);
  b.add(c, 2, 1, 1);
  b.run();
  EXPECT_EQ(b.model.ids, (Ints{11, 12, 13, 14, 22}));
  EXPECT_EQ(b.model.positions, (Ints{1, 2, 3, 4, 2}));
  EXPECT_EQ(b.model.offsets, (Ints{0, 4, 5}));
  EXPECT_EQ(b.model.out_rows, (Ints{3, 4}));
  Ints slots;
  for (int p : {1, 2, 3, 4}) slots.push_back(a.tables[0].slot(p));
  slots.push_back(c.tables[0].slot(2));
  EXPECT_EQ(b.model.slots, slots);
  const int B = b.model.table_width;
  EXPECT_EQ(b.model.table[0], a.tables[0].pages()[0]);
  EXPECT_EQ(b.model.table[1], -1);
  EXPECT_EQ(b.model.table[B], c.tables[0].pages()[0]);
  EXPECT_EQ(b.model.table[B + 1], c.tables[0].pages()[1]);
  EXPECT_EQ(b.drawn(0), Ints{next_token(14, 4)});
  EXPECT_EQ(b.drawn(1), Ints{next_token(22, 2)});
}

TEST(Runner, FeedsTheLastTokenOfAStepThatIsNotCommitted) {
  Bench b;
  Sequence& s = b.sequence({10, 11}, 8);
  b.add(s, 0, 2, 1);
  b.run();
  const int first = b.drawn(0)[0];
  b.batch.clear();
  b.add(s, 2, 1, 1);  // the host's list of tokens ends at position 1
  b.run();
  EXPECT_EQ(b.model.ids, Ints{first});
  EXPECT_EQ(b.drawn(0), Ints{next_token(first, 2)});
}

TEST(Runner, AForkDrawsFromTheRowOfItsSource) {
  Bench b;
  Sequence& s = b.sequence({10, 11, 12}, 8);
  Sequence& fork = b.sequence({10, 11, 12}, 8);
  b.add(s, 0, 3, 1);
  b.batch.entries.push_back({.sequence = &fork, .first = 3, .row = 2, .draws = 1});
  b.batch.scores.push_back({1, 2, 2, true, false});
  b.run();
  EXPECT_EQ(b.model.out_rows, (Ints{2, 2}));
  EXPECT_EQ(b.drawn(0), b.drawn(1));
  EXPECT_EQ(b.drawn(1).size(), 1u);
}

TEST(Scorer, KeepsGuessesUpToTheFirstWrongOne) {
  Bench b;
  Sequence& s = b.sequence({10}, 8);
  const int one = next_token(10, 0), two = next_token(one, 1), three = next_token(two, 2);
  s.draft = {one, two, three + 1};
  b.add(s, 0, 4, 4);
  b.run();
  EXPECT_EQ(b.model.ids, (Ints{10, one, two, three + 1}));
  EXPECT_EQ(b.drawn(0), (Ints{one, two, three})) << "the last row had a wrong input";
  EXPECT_EQ(b.batch.entries[0].computed(), 3);
}

TEST(Scorer, NothingIsDrawnBehindAWrongGuessEvenWhereALaterOneFits) {
  Bench b;
  Sequence& s = b.sequence({10}, 8);
  const int one = next_token(10, 0);
  s.draft = {one + 1, one};  // the second guess is what the first row draws
  b.add(s, 0, 3, 3);
  b.run();
  EXPECT_EQ(b.drawn(0), Ints{one});
  EXPECT_EQ(b.batch.entries[0].computed(), 1);
}

TEST(Scorer, ReportsLogitsThatARequestAskedFor) {
  Bench b;
  Sequence& s = b.sequence({10, 11, 12}, 8);
  s.request.logit_positions = {0};
  b.add(s, 0, 3, 1);
  b.batch.scores.insert(b.batch.scores.begin(), ScoreRow{0, 0, 0, false, true});
  b.run();
  EXPECT_EQ(b.drawn(0), Ints{next_token(12, 2)}) << "a row that is only reported draws nothing";
}

TEST(Scorer, ScoresMoreRowsThanFitOneSlice) {
  Bench b;
  const int slice = std::min(b.backend->head_rows(), kStepTokens);
  Sequence& s = b.sequence(Ints(1, 10), kContext);
  for (int i = 1, id = 10; i < slice; ++i) s.draft.push_back(id = next_token(id, i - 1));
  b.add(s, 0, slice, slice);
  b.run();
  EXPECT_EQ(static_cast<int>(b.drawn(0).size()), slice);
}

TEST(Scorer, PooledRowsFollowTheRowsToScore) {
  Bench b;
  Sequence& s = b.sequence({10, 11, 12, 13}, 8);
  s.request.pooling = Pooling::kMean;
  s.pool = Pool(Pooling::kMean, kDim);
  b.add(s, 0, 3, 1);
  for (int i = 0; i < 3; ++i) b.batch.pools.push_back({0, i, i});
  b.run();
  EXPECT_EQ(b.model.out_rows, (Ints{2, 0, 1, 2}));
  std::vector<float> mean(kDim);
  EXPECT_TRUE(s.pool.result(3, mean));
  EXPECT_NEAR(mean[1] / mean[0], 1.0 / 11.0, 1e-6) << "positions 0, 1, 2 of ids 10, 11, 12";
}

}  // namespace
}  // namespace vitrine
