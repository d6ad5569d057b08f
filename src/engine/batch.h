// One step's work: the rows that are computed, the rows that are scored, and what came of them.
//
// The scheduler fills it (plan), the runner computes its rows, the scorer turns the scored rows
// into tokens, and the scheduler takes these (commit).
#pragma once

#include <algorithm>
#include <vector>

#include "engine/sequence.h"

namespace vitrine {

// A row whose logits are wanted. Rows of one entry stand together, in the order of positions.
struct ScoreRow {
  int entry = 0;        // in Batch::entries
  int row = 0;          // among the rows of the step
  int position = 0;     // of that row: its logits are about the token at position + 1
  bool draw = false;    // they choose a token of the entry
  bool report = false;  // the request asked for them (logits, log probabilities of the prompt)
};

// A row whose hidden state goes into an embedding.
struct PoolRow {
  int entry = 0, row = 0, position = 0;
};

struct DrawnToken {
  std::int32_t id = -1;
  float logprob = 0;
  int top = -1;        // where its best tokens begin in Batch::top; -1: not asked for
  float p = kNoShare;  // Choice::p
};

// A sequence that has a seat and no rows in the step.
struct Absent {
  std::uint64_t sequence = 0;
  int slot = 0;
  LifeKind kind = LifeKind::kSatOut;
  LifeCause cause = LifeCause::kNone;
};

// The rows of one sequence.
struct BatchEntry {
  Sequence* sequence = nullptr;
  int first = 0;  // position of the first row
  int count = 0;  // rows; 0: a fork, which draws from a row of the sequence that it forks from
  int row = 0;    // of the step: the first of them
  int draws = 0;  // rows that draw. All but the first of these have a guess for input (a draft)
  bool prefill = false;
  int again = 0;  // of its rows, computed before and dropped by a preemption

  // What came of it. Tokens are drawn row by row, as long as the token drawn is the guess that the
  // next row was computed with, so `tokens` <= `draws`; the rows behind the last are taken back.
  int first_token = 0, tokens = 0;  // in Batch::drawn
  LogitsStatus status = LogitsStatus::kOk;
  bool complete = false;  // the constraint is met and nothing can follow: no token was drawn
  bool broken = false;    // the pooled hidden states are not finite
  bool starved = false;   // there was no memory for its mask or for what it reports
  double flops = 0, kv_read_bytes = 0, kv_write_bytes = 0;

  int first_draw() const { return first + count - draws; }  // position of the first row that draws
  // Position of the token that could not be drawn, where one could not.
  int failed_draw() const { return first_draw() + tokens + 1; }
  // Positions whose K and V stay after the step.
  int computed() const { return first + count - std::max(0, draws - std::max(tokens, 1)); }
};

// Rows to which a step of n rows that only decodes is padded where steps are replayed.
int padded_rows(int n);

struct Batch {
  struct Copy {
    int group;
    PageCopy pages;
  };
  std::vector<BatchEntry> entries;
  std::vector<ScoreRow> scores;
  std::vector<PoolRow> pools;
  std::vector<Copy> copies;       // of pages, before anything is written
  std::vector<DrawnToken> drawn;  // of all entries
  std::vector<TokenLogprob> top;  // best tokens of those that ask for them
  std::vector<Absent> absent;
  int tokens = 0;  // rows
  int forks = 0;
  // Guessing took, a model's part of it, and what the step is charged with (engine/speculator.h).
  std::int64_t draft_ns = 0, model_draft_ns = 0;
  double charged_ns = 0;
  bool waited = false;  // it was planned with nothing in flight, so that guesses could be made
  int flight = -1;      // which of the steps in flight it is, for the runner and the scorer
  int rows_run = 0, scores_run = 0;  // rows computed and scored, padding included

  bool empty() const { return entries.empty(); }
  // `guesses`: the most that one sequence has in a step.
  void reserve(int sequences, int step_tokens, int groups, int guesses);
  void clear();
};

}  // namespace vitrine
