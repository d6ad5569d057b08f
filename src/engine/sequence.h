// A request's state in the engine. Engine thread only, under the engine's books lock.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "engine/beams.h"
#include "engine/draw_state.h"
#include "engine/request.h"
#include "kv/block_table.h"
#include "trace/step_record.h"

namespace vitrine {

// Three lengths tell how far a sequence is, in positions:
//   computed <= scheduled    K and V exist after the committed steps | after all planned steps
//   tokens.size()            committed: tokens that the host knows
// Planning never reads a token past the committed length: such an input comes from the scorer's
// table of last tokens, at this sequence's slot, or is a guess (`draft`).
struct Sequence : DrawState {
  std::uint64_t id = 0;
  Request request;  // without its prompt, which is the beginning of `tokens`
  std::shared_ptr<TokenStream> stream;
  std::vector<std::int32_t> tokens;  // prompt and committed output
  // Guesses for the tokens that follow. The next step that decodes computes them beside the last
  // token; commit keeps the K and V of those that were drawn and empties it.
  std::vector<std::int32_t> draft;
  GuessSource draft_source = GuessSource::kNgram;  // who made them
  int begun = 0;  // tokens of the output that were there from the start
  // Tokens to compute before the next one is drawn: the prompt, and after a preemption the output
  // so far too.
  int prefill_end = 0;
  int max_output = 0;
  int scheduled = 0, computed = 0;
  int reached = 0;                         // most positions computed before a preemption
  int in_flight = 0;                       // planned steps that are not committed
  std::uint64_t planned = 0, starved = 0;  // the last plan in which it has rows; lacked a page
  bool finished = false;
  bool preempted = false;  // waits to be computed again

  std::vector<std::unique_ptr<Sequence>> forks;  // further choices, until the prompt is computed

  std::shared_ptr<Beams> beams;           // of its request; null: it draws by itself
  std::vector<BeamCandidate> candidates;  // of its last row, once it is `ranked`
  bool ranked = false, resting = false;   // resting: it waits for other beams
  std::optional<double> score;            // of its answer

  int slot = -1;                   // its place in the tables by slot, while it runs; -1: waiting
  std::vector<BlockTable> tables;  // by cache group
  PrefixKey root;
  std::vector<PrefixKey> keys;  // of the first whole pages of `tokens`
  int named = 0;                // pages that have been given their key
  int tenant = -1;              // index in the queue's books

  std::optional<DeviceDraw> device_draw;  // none: its tokens are drawn by the chain
  bool waits_for_host = false;            // steps are queued, and the host draws its tokens
  Pool pool;                              // of hidden states, for Request::pooling

  Clock::time_point submitted, last_token;
  std::optional<Clock::time_point> first_since;  // the first of the queue, until it is admitted
  std::optional<Clock::time_point> deadline;
  std::optional<Clock::time_point> held_since;  // it may draw no more for now
  std::int64_t rank = 0;                        // lower goes first; see Scheduler
  Account account;

  bool goes_in_circles() const {
    return request.repetition &&
           request.repetition->found(std::span(tokens).subspan(static_cast<std::size_t>(prompt)));
  }
  int output() const { return static_cast<int>(tokens.size()) - prompt; }
  // The token at `position`, known or guessed.
  std::int32_t token_at(int position) const {
    auto known = static_cast<int>(tokens.size());
    return position < known ? tokens[position] : draft[position - known];
  }
  bool knows(int position) const {
    return position < static_cast<int>(tokens.size() + draft.size());
  }
  // It cannot be planned again before its step in flight is committed, or before other beams are as far.
  bool waits() const { return resting || (in_flight > 0 && (waits_for_host || !draft.empty())); }
  // Output tokens that the planned steps will have produced.
  int planned_output() const {
    return scheduled < prefill_end ? prefill_end - prompt : scheduled - prompt + 1;
  }
  bool prefilling() const { return scheduled < prefill_end; }
  // Tokens that may still be planned, by max_tokens and by what its reader allows.
  int left() const {
    const int planned = planned_output(), allowed = stream->allowed();
    const int most = max_output - planned;
    return allowed < 0 || beams ? most : std::min(most, begun + allowed - planned);
  }
  // All that its reader allows is planned.
  bool held() const {
    if (beams) return beams->held();
    const int allowed = stream->allowed();
    return allowed >= 0 && planned_output() - begun >= allowed;
  }
  // Its reader is too far behind, or holds it.
  bool paused() const {
    if (held()) return true;
    const int most = request.max_backlog;
    return most > 0 && (beams ? beams->behind(most) : stream->backlog() >= most);
  }
  // How many positions need no row: whole pages of these may come from the cache. -1: all rows are
  // wanted.
  int may_reuse() const {
    const auto& wanted = request.logit_positions;
    if (request.prompt_logprobs || request.pooling == Pooling::kMean) return -1;
    if (wanted.empty()) return prefill_end - 1;
    return wanted.front() == 0 ? -1 : std::min(prefill_end - 1, wanted.front());
  }
  bool wants_hidden(int position) const {
    return request.pooling && (*request.pooling == Pooling::kMean || position + 1 == prompt);
  }
  bool wants_logits(int position) const {
    if (position >= prompt) return false;
    const auto& wanted = request.logit_positions;
    return (request.prompt_logprobs && position + 1 < prompt && output() == 0) ||
           (!wanted.empty() && std::binary_search(wanted.begin(), wanted.end(), position));
  }
  // That it takes and gives back at the same time.
  int seats() const { return beams ? beams->size() : 1; }
  int pages_held() const {
    int held = 0;
    for (const BlockTable& t : tables) held += t.held();
    return held;
  }
};

}  // namespace vitrine
