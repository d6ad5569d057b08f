// What happens to the rows of a step that are scored: the head, masks, the draw, log probabilities
// and pooling, on the host and on the device. One place for both, so that they agree.
//
// A backend that queues its work (asynchronous) draws by itself where it can: the token stays
// there, in a table by slot, and feeds the next step. Everything else is drawn here, by the
// request's sampler chain. Both give the same token.
//
// A sequence's history, matcher and reasoning limit advance only with tokens that were drawn.
//
// Engine thread only. After create() nothing allocates but what a request asks for (logits, best
// tokens of its prompt) and masks of new states of a constraint. Where there is no memory for these,
// the entry is starved, and the others do not notice.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <vector>

#include "engine/batch.h"
#include "engine/memory_plan.h"
#include "kernels/backend.h"
#include "nn/model.h"

namespace vitrine {

class Scorer {
 public:
  // The model and the backend must outlive it.
  static Result<std::unique_ptr<Scorer>> create(Model& model, Backend& backend, int sequences,
                                                int step_tokens);

  // ---- before the step: reads batch.scores, batch.pools and batch.flight
  void begin(const Batch& batch);
  // The results of the step that begin() saw can wait while further steps run. Otherwise they must
  // be collected, and on an asynchronous backend committed, before the next begin().
  bool deferred() const { return current_->deferred; }
  // The step may be padded to `rows` rows and replayed: all logits are computed at once, or no row
  // of them is wanted on the host.
  bool replayable(int rows) const { return host_rows_ == 0 || rows <= slice_rows_; }
  bool greedy() const { return greedy_; }  // every draw takes the best token
  // How to draw each row of batch.scores, for the device; pad() adds rows that are not drawn.
  std::span<const DrawRow> draws() const { return draws_; }
  void pad(int rows) { draws_.resize(rows); }
  // Where the forward pass puts the final hidden states: rows of batch.scores, then batch.pools.
  Tensor hidden(std::int64_t rows) const { return hidden_.rows(rows); }
  // The token that the sequence in this slot was given last; where the device has the table, the
  // number by which Ops::embed finds it there.
  std::int32_t last_token(int slot) const { return async_ ? -1 - slot : last_tokens_[slot]; }

  // ---- within a deferred step, after the forward pass: queues the head and the draws of `rows`
  // rows. `draws` is what draws() gave, in the device's memory. `replayed`: the calls may be
  // recorded, so nothing is queued that differs from step to step; fetch() follows.
  void score(const Batch& batch, std::int64_t rows, const DrawRow* draws, bool replayed);
  void fetch(const Batch& batch) { fetch_rows(batch, 0, slice_rows_); }

  // ---- when the step is through: tokens, statuses and embeddings go into the batch, its sequences
  // and their streams.
  void collect(Batch& batch);
  // Instead, where nothing is drawn on a device and no row is reported: f(row, its logits) for each of
  // batch.scores.
  template <typename F>
  void each_row(const Batch& batch, F f);

 private:
  // What is needed to collect a step that is through.
  struct Flight {
    bool deferred = false;
    Buffer drawn, logits;  // shared memory: DrawnRow (T); f32 (kHostRows,V)
    DrawnRow* drawn_rows() const { return static_cast<DrawnRow*>(drawn.data()); }
    float* host_logits() const { return static_cast<float*>(logits.data()); }
  };
  // Rows of logits that may come back late; a step that wants more is waited for.
  static constexpr int kHostRows = 32;

  Scorer(Model& model, Backend& backend, int step_tokens);
  Status allocate(int sequences, int step_tokens);
  bool drawn_on_device(const Batch& batch, const ScoreRow& row) const;
  // Queues the way to the host of those rows of logits_ that it wants: of rows [first, first + n).
  void fetch_rows(const Batch& batch, std::int64_t first, std::int64_t n);
  void collect_deferred(Batch& batch, const Flight& flight);
  void collect_now(Batch& batch);
  void take_row(Batch& batch, const ScoreRow& row, std::span<const float> logits, bool drawn);
  void report(const ScoreRow& row, Sequence& s, std::span<const float> logits);
  void draw(Batch& batch, const ScoreRow& row, std::span<const float> logits);
  static bool counts(const Batch& batch, const ScoreRow& row);
  void rank(BatchEntry& entry, Sequence& s, const DrawState::Next& next,
            std::span<const float> logits);
  void add_token(Batch& batch, BatchEntry& entry, const DrawnToken& token);
  // Where the device puts tokens that no later step is fed from.
  int spare_slot() const { return static_cast<int>(last_.dim(0)) - 1; }
  void pool(Batch& batch);

  Model& model_;
  Backend& b_;
  const int slice_rows_;  // rows of logits that are computed at once
  const bool async_;
  const std::int64_t vocab_, dim_;

  std::vector<Buffer> buffers_;
  Tensor hidden_;  // (T,E)
  Tensor logits_;  // (slice_rows_,V)
  Tensor last_;    // (slots, and a spare one) i32, on an asynchronous backend
  std::vector<std::int32_t> last_tokens_;  // by slot, on the others
  std::vector<DrawRow> draws_;
  int host_rows_ = 0;
  bool greedy_ = false;
  std::array<Flight, Backend::kStepsInFlight> flights_;
  Flight* current_ = nullptr;
  std::vector<float> staging_;
  Scratch scratch_;
};

template <typename F>
void Scorer::each_row(const Batch& batch, F f) {
  const Flight& flight = flights_[batch.flight];
  const auto rows = static_cast<std::int64_t>(batch.scores.size());
  const auto row_of = [&](const float* values, std::int64_t i) {
    return std::span(values + i * vocab_, static_cast<std::size_t>(vocab_));
  };
  if (flight.deferred) {
    for (std::int64_t i = 0; i < rows; ++i) f(batch.scores[i], row_of(flight.host_logits(), i));
    return;
  }
  // The head over a slice of rows at a time.
  for (std::int64_t first = 0; first < rows; first += slice_rows_) {
    const std::int64_t n = std::min<std::int64_t>(slice_rows_, rows - first);
    Tensor logits = logits_.rows(n);
    model_.head(b_, logits, hidden_.rows(first, n));
    auto* values = static_cast<const float*>(b_.read(logits.data, n * vocab_ * 4, staging_.data()));
    for (std::int64_t i = 0; i < n; ++i) f(batch.scores[first + i], row_of(values, i));
  }
}

}  // namespace vitrine
