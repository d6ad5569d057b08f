#include "engine/scorer.h"

#include <algorithm>
#include <limits>
#include <new>

namespace vitrine {
namespace {

// How a row is drawn by the device.
DrawRow device_row(const Sequence& s, const DrawSpec& spec, int slot) {
  const DeviceDraw& d = *s.device_draw;
  return {.key = spec.key(),
          .scale = d.scale,
          .top_p = d.top_p,
          .max_nats = d.max_nats,
          .top_k = d.top_k,
          .slot = slot};
}

}  // namespace

Result<std::unique_ptr<Scorer>> Scorer::create(Model& model, Backend& backend, int sequences,
                                               int step_tokens) {
  std::unique_ptr<Scorer> scorer(new Scorer(model, backend, step_tokens));
  VT_RETURN_IF_ERROR(scorer->allocate(sequences, step_tokens));
  return scorer;
}

Scorer::Scorer(Model& model, Backend& backend, int step_tokens)
    : model_(model),
      b_(backend),
      slice_rows_(std::min(backend.head_rows(), step_tokens)),
      async_(backend.asynchronous()),
      vocab_(model.info().vocab),
      dim_(model.info().dim),
      scratch_(model.info().vocab) {}

Status Scorer::allocate(int sequences, int step_tokens) {
  auto make = [&](DType dtype, Shape shape) -> Result<Tensor> {
    VT_TRY(Buffer buffer, b_.allocate(shape.elements() * 4));
    Tensor t{buffer.data(), dtype, shape};
    buffers_.push_back(std::move(buffer));
    return t;
  };
  VT_TRY(hidden_, make(DType::kF32, {step_tokens, dim_}));
  VT_TRY(logits_, make(DType::kF32, {slice_rows_, vocab_}));
  draws_.reserve(step_tokens);
  last_tokens_.resize(sequences);
  staging_.resize(static_cast<std::size_t>(std::max(slice_rows_ * vocab_, dim_)));
  current_ = &flights_[0];
  if (!async_) return Ok{};
  VT_TRY(last_, make(DType::kI32, {sequences + 1}));
  b_.feed_from(last_);
  for (Flight& f : flights_) {
    VT_TRY(f.drawn, b_.allocate_shared(step_tokens * static_cast<std::int64_t>(sizeof(DrawnRow))));
    VT_TRY(f.logits, b_.allocate_shared(kHostRows * vocab_ * 4));
  }
  return Ok{};
}

// ---- before the step

bool Scorer::drawn_on_device(const Batch& batch, const ScoreRow& row) const {
  const BatchEntry& entry = batch.entries[row.entry];
  return async_ && row.draw && entry.sequence->device_draw;
}

void Scorer::begin(const Batch& batch) {
  current_ = &flights_[batch.flight];
  draws_.clear();
  host_rows_ = 0;
  greedy_ = true;
  for (const ScoreRow& row : batch.scores) {
    const BatchEntry& entry = batch.entries[row.entry];
    const Sequence& s = *entry.sequence;
    const bool device = drawn_on_device(batch, row);
    // Which of the tokens beside guesses is the last one is found out on the host.
    const int slot = entry.draws > 1 ? spare_slot() : s.slot;
    draws_.push_back(device ? device_row(s, s.spec(row.position), slot) : DrawRow{});
    greedy_ = greedy_ && (!device || s.device_draw->top_k == 1);
    host_rows_ += row.report || !device;
  }
  current_->deferred = async_ && host_rows_ <= kHostRows && batch.pools.empty();
}

// ---- on the device

void Scorer::score(const Batch& batch, std::int64_t rows, const DrawRow* draws, bool replayed) {
  for (std::int64_t first = 0; first < rows; first += slice_rows_) {
    const std::int64_t n = std::min<std::int64_t>(slice_rows_, rows - first);
    Tensor logits = logits_.rows(n);
    model_.head(b_, logits, hidden_.rows(first, n));
    b_.draw(current_->drawn_rows() + first, last_, draws + first, logits, greedy_);
    // The next slice takes the place of this one.
    if (!replayed) fetch_rows(batch, first, n);
  }
}

void Scorer::fetch_rows(const Batch& batch, std::int64_t first, std::int64_t n) {
  const auto rows = static_cast<std::int64_t>(batch.scores.size());
  std::int64_t host_row = 0;
  for (std::int64_t i = 0; i < std::min(rows, first + n); ++i) {
    const ScoreRow& row = batch.scores[i];
    if (!row.report && drawn_on_device(batch, row)) continue;
    if (i >= first)
      b_.read_later(current_->host_logits() + host_row * vocab_,
                    logits_.f32() + (i - first) * vocab_, vocab_ * 4);
    ++host_row;
  }
}

// ---- when the step is through

void Scorer::collect(Batch& batch) {
  const Flight& flight = flights_[batch.flight];
  if (flight.deferred) return collect_deferred(batch, flight);
  collect_now(batch);
  pool(batch);
}

void Scorer::collect_deferred(Batch& batch, const Flight& flight) {
  const float* logits = flight.host_logits();
  for (std::size_t i = 0; i < batch.scores.size(); ++i) {
    const ScoreRow& row = batch.scores[i];
    const bool device = drawn_on_device(batch, row);
    if (device) {
      const DrawnRow& drawn = flight.drawn_rows()[i];
      BatchEntry& entry = batch.entries[row.entry];
      if (counts(batch, row)) {
        entry.status = static_cast<LogitsStatus>(drawn.status);
        if (entry.status == LogitsStatus::kOk) add_token(batch, entry, {.id = drawn.token});
      }
    }
    if (device && !row.report) continue;
    const std::span<const float> values(logits, static_cast<std::size_t>(vocab_));
    logits += vocab_;
    take_row(batch, row, values, device);
  }
}

void Scorer::collect_now(Batch& batch) {
  each_row(batch, [&](const ScoreRow& row, std::span<const float> logits) {
    take_row(batch, row, logits, false);
  });
}

void Scorer::take_row(Batch& batch, const ScoreRow& row, std::span<const float> logits,
                      bool drawn) {
  BatchEntry& entry = batch.entries[row.entry];
  if (entry.starved) return;
  try {
    if (row.report) report(row, *entry.sequence, logits);
    if (row.draw && !drawn) draw(batch, row, logits);
  } catch (const std::bad_alloc&) {
    entry.starved = true;
  }
}

void Scorer::report(const ScoreRow& row, Sequence& s, std::span<const float> logits) {
  if (s.finished) return;  // its stream is the reader's
  const int position = row.position;
  const auto& wanted = s.request.logit_positions;
  if (std::binary_search(wanted.begin(), wanted.end(), position))
    s.stream->add_logits(position, {logits.begin(), logits.end()});
  if (!s.request.prompt_logprobs || position + 1 >= s.prompt) return;
  PromptLogprobs& out = s.stream->prompt_logprobs_;
  const LogitsScan scan = scan_logits(logits);
  const std::int32_t next = s.tokens[position + 1];
  out.logprobs[position + 1] = scan.status == LogitsStatus::kOk
                                   ? LogSoftmax(logits, scan).logprob(logits[next])
                                   : -std::numeric_limits<float>::infinity();
  auto& top = out.top[position + 1];
  top.resize(s.request.top_logprobs);
  top.resize(top_logprobs(logits, top, scratch_));
}

// A row after a wrong guess was computed for nothing: the first wrong one ends the entry's draws.
bool Scorer::counts(const Batch& batch, const ScoreRow& row) {
  const BatchEntry& entry = batch.entries[row.entry];
  const int before = row.position - entry.first_draw();
  return entry.status == LogitsStatus::kOk && !entry.complete && entry.tokens == before &&
         (before == 0 || batch.drawn.back().id == entry.sequence->token_at(row.position));
}

// Like the history, the matcher runs ahead of what is committed: it has seen what was drawn.
void Scorer::draw(Batch& batch, const ScoreRow& row, std::span<const float> logits) {
  BatchEntry& entry = batch.entries[row.entry];
  Sequence& s = *entry.sequence;
  if (!counts(batch, row)) return;
  const DrawState::Next next = s.next(row.position);
  if (s.beams) return rank(entry, s, next, logits);
  entry.complete = next.complete;
  entry.status = next.status;
  if (entry.complete || entry.status != LogitsStatus::kOk) return;
  const Choice choice = s.chain->sample(logits, s.history, next.spec, scratch_);
  entry.status = choice.status;
  if (choice.status != LogitsStatus::kOk) return;
  if (!s.accept(choice.token)) {
    entry.status = LogitsStatus::kBarred;
    return;
  }
  DrawnToken token{.id = choice.token, .logprob = choice.logprob, .p = choice.p};
  if (const int k = s.request.top_logprobs; k > 0) {
    token.top = static_cast<int>(batch.top.size());
    batch.top.resize(batch.top.size() + k, {-1, 0});
    top_logprobs(logits, std::span(batch.top).last(k), scratch_);
  }
  add_token(batch, entry, token);
  last_tokens_[s.slot] = token.id;
}

// The row of a beam: what its text may go on with. Where that is nothing, the text is given up.
void Scorer::rank(BatchEntry& entry, Sequence& s, const DrawState::Next& next,
                  std::span<const float> logits) {
  s.candidates.clear();
  if (next.complete) s.candidates.push_back({.token = -1, .logprob = 0, .ends = true});
  if (next.complete || next.status != LogitsStatus::kOk) return;
  const auto most = static_cast<std::size_t>(s.beams->search.options().candidates());
  const LogitsStatus status =
      s.chain->continuations(logits, s.history, next.spec, s.ends, most, scratch_, s.candidates);
  if (status == LogitsStatus::kNan) entry.status = status;
}

void Scorer::add_token(Batch& batch, BatchEntry& entry, const DrawnToken& token) {
  if (entry.tokens++ == 0) entry.first_token = static_cast<int>(batch.drawn.size());
  batch.drawn.push_back(token);
}

void Scorer::pool(Batch& batch) {
  const auto scored = static_cast<std::int64_t>(batch.scores.size()),
             rows = static_cast<std::int64_t>(batch.pools.size());
  const std::int64_t most = static_cast<std::int64_t>(staging_.size()) / dim_;
  for (std::int64_t first = 0; first < rows; first += most) {
    const std::int64_t n = std::min(most, rows - first);
    auto* values = static_cast<const float*>(
        b_.read(hidden_.rows(scored + first, n).data, n * dim_ * 4, staging_.data()));
    for (std::int64_t i = 0; i < n; ++i) {
      const PoolRow& row = batch.pools[first + i];
      BatchEntry& entry = batch.entries[row.entry];
      Sequence& s = *entry.sequence;
      if (s.finished) continue;  // its stream is the reader's
      s.pool.add(row.position, {values + i * dim_, static_cast<std::size_t>(dim_)});
      if (row.position + 1 == s.prompt)
        entry.broken = !s.pool.result(s.prompt, s.stream->embedding_);
    }
  }
}

}  // namespace vitrine
