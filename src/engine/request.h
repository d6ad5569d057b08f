// What a caller asks of the engine, and the stream that answers.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/account.h"
#include "engine/pooling.h"
#include "sampling/beam_search.h"
#include "sampling/logprobs.h"
#include "sampling/params.h"
#include "sampling/reasoning_limit.h"
#include "sampling/repetition_end.h"

namespace vitrine {

class Constraint;

using Clock = std::chrono::steady_clock;

inline constexpr int kMaxChoices = 128;
inline constexpr int kMaxTopLogprobs = 20;
inline constexpr int kMaxPriority = 1000;  // either way; lower runs first

struct Request {
  std::vector<std::int32_t> prompt;
  // Output that is already there: the sequence goes on after it as one that was preempted would, with
  // the same penalties, constraint, budget of reasoning and random numbers. Counts towards max_tokens.
  std::vector<std::int32_t> begun;
  // TokenEvent::p of these, for a sampler with a state; those that are missing do not change it.
  std::vector<float> begun_p;
  int first_choice = 0;      // index of the first choice: with whose random numbers it is drawn
  std::uint64_t parent = 0;  // the sequence that it goes on from or looks at again; 0: none
  std::optional<int> max_tokens;  // none: until the context is full; 0: only the prompt
  int min_tokens = 0;             // before that many, tokens that end the text cannot be drawn
  SamplingParams sampling;        // resolved: all layers laid over each other
  std::shared_ptr<const Constraint> constraint;  // what the text must be; null: anything
  std::optional<ReasoningBudget> reasoning;      // none: as long as the model likes
  std::optional<RepetitionEnd> repetition;       // ends the text as an end token does
  bool ignore_eos = false;
  std::vector<std::int32_t> stop_token_ids;  // end the text as an end token does, ignore_eos or not
  int choices = 1;                           // answers to the same prompt, which is computed once
  // Beam search: the choices are its best texts, BeamOptions::returned of them. Neither drawn nor cut, so that
  // samplers that do are refused (SamplingParams::check_beams), as is what is told about single draws.
  std::optional<BeamOptions> beams;
  bool logprobs = false;             // fill TokenEvent::logprob
  int top_logprobs = 0;              // the best tokens of each position, with logprobs
  bool prompt_logprobs = false;      // of the prompt too; nothing comes from the cache then
  std::vector<int> logit_positions;  // prompt positions whose logits are wanted
  std::optional<Pooling> pooling;    // an embedding of the prompt; max_tokens is 0 then

  int priority = 0;        // lower runs first
  std::string tenant;      // whom to be fair to: the name of an API key
  double weight = 1;       // the tenant's share
  std::string cache_salt;  // pages are shared only among requests with the same salt
  Stamps stamps;           // those of before it is submitted
  std::shared_ptr<const Written> written;  // its answer, as it goes out
  std::string traceparent;                 // as Account has it
  std::string label;  // the caller's name for the request, shown in accounts and snapshots
  std::optional<std::chrono::milliseconds> timeout;  // from submission
  // Tokens that it may draw until TokenStream::allow() says more; none: as many as it likes.
  std::optional<int> allow;
  // Unread tokens at which the sequence pauses until its reader has caught up; 0: never.
  int max_backlog = 0;
  bool speculative = true;  // its next tokens may be guessed, where the engine does that
  // What the caller believes the answer to be, for guesses; null: nothing.
  std::shared_ptr<const std::vector<std::int32_t>> prediction;
  // Called by the engine thread when there is something new to read. Must not block or throw.
  std::function<void()> on_ready;
};

struct TokenEvent {
  std::int32_t token = 0;
  float logprob = 0;
  std::int64_t at_ns = 0;  // when it was committed, process_ns()
  float p = kNoShare;      // Choice::p
};

struct Finish {
  FinishReason reason = FinishReason::kStop;
  std::string error;  // kError only
  std::uint64_t seed = 0;
  // The token that ended the text, which is not part of it; -1: none.
  std::int32_t stop_token = -1;
  std::optional<double> score;  // of a text that beam search found
  Account account;
};

// The prompt's own log probabilities: entry i is about prompt[i]; entry 0 is empty.
struct PromptLogprobs {
  std::vector<float> logprobs;
  std::vector<std::vector<TokenLogprob>> top;
};

// Written by the engine thread, read by one other thread. cancel(), stop(), allow(), release(), held(), drawn() and
// finished() may be called by any thread.
class TokenStream {
 public:
  std::uint64_t id() const { return id_; }  // of its sequence, as accounts have it
  // Blocks for the next token; none when the sequence has finished.
  std::optional<TokenEvent> next();
  // Appends what has come since the last call, without blocking: tokens, and `top_logprobs` entries
  // for each (a token of -1 fills up where fewer can follow). True once nothing more will come.
  bool read(std::vector<TokenEvent>& events, std::vector<TokenLogprob>& top);
  // Blocks until the sequence has finished.
  const Finish& wait();
  // Asks the engine to end the sequence; it does so before its next step. cancel(): nobody wants
  // the rest. stop(): the reader found what ends the text (a stop string).
  void cancel() { end_.store(End::kCancel, std::memory_order_relaxed); }
  void stop() { end_.store(End::kStop, std::memory_order_relaxed); }
  // Holds the sequence: it draws `more` tokens beyond those that it was allowed before, or has drawn
  // where there was no limit, and then pauses; 0: it pauses now. release(): as many as it likes.
  void allow(int more);
  void release() { allowed_.store(-1, std::memory_order_relaxed); }
  // It has drawn all that it is allowed.
  bool held() const { return allowed() >= 0 && drawn() >= allowed(); }
  int drawn() const { return drawn_.load(std::memory_order_relaxed); }  // tokens, read or not
  bool finished() const;
  // Logits of the positions asked for; complete when the sequence has finished.
  const std::map<int, std::vector<float>>& logits();
  // Of length 1; empty unless Request::pooling asks for it. Complete when the sequence has
  // finished.
  const std::vector<float>& embedding() const { return embedding_; }
  // Complete with the first token, or when the sequence has finished. Not before.
  const PromptLogprobs& prompt_logprobs() const { return prompt_logprobs_; }

 private:
  friend class Admission;
  friend class Beams;
  friend class Engine;
  friend class Scheduler;
  friend class Scorer;
  friend struct Sequence;
  void reserve(const Request& request, int prompt, int max_output);
  void push(TokenEvent event, const TokenLogprob* top);  // may throw: nothing was pushed
  void add_logits(int position, std::vector<float> row);
  void close(Finish finish) noexcept;
  enum class End { kNone, kCancel, kStop };
  End end_asked() const { return end_.load(std::memory_order_relaxed); }
  int allowed() const { return allowed_.load(std::memory_order_relaxed); }
  int backlog() const { return backlog_.load(std::memory_order_relaxed); }

  std::uint64_t id_ = 0;  // before anybody sees the stream
  std::function<void()> on_ready_;
  int top_ = 0;  // entries of top_events_ per event
  std::atomic<End> end_{End::kNone};
  std::atomic<int> backlog_{0};  // unread events
  std::atomic<int> drawn_{0};
  std::atomic<int> allowed_{-1};  // -1: no limit
  PromptLogprobs prompt_logprobs_;
  std::vector<float> embedding_;

  mutable std::mutex mutex_;
  // Two, so that a thread that waits for the end is not woken for every token.
  std::condition_variable ready_, finished_;
  // Guarded by mutex_.
  std::vector<TokenEvent> events_;
  std::vector<TokenLogprob> top_events_;
  std::size_t read_ = 0;
  std::optional<Finish> finish_;
  std::map<int, std::vector<float>> logits_;
};

}  // namespace vitrine
