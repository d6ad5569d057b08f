// What a caller asks of the engine, and the stream that answers.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "sampling/params.h"

namespace vitrine {

struct Request {
  std::vector<std::int32_t> prompt;
  std::optional<int> max_tokens;  // none: until the context is full; 0: only the prompt
  SamplingParams sampling;        // resolved: all layers laid over each other
  bool ignore_eos = false;
  std::uint32_t choice_index = 0;    // of several choices for one request
  bool logprobs = false;             // fill TokenEvent::logprob
  std::vector<int> logit_positions;  // prompt positions whose logits are wanted
};

enum class FinishReason { kStop, kLength, kCancelled, kError };
const char* finish_reason_name(FinishReason reason);

struct Usage {
  int prompt_tokens = 0, completion_tokens = 0, cached_tokens = 0;
};

// From the records of the steps that the sequence was in.
struct Timings {
  double queue_ms = 0;                   // submitted until first planned
  double ttft_ms = 0;                    // submitted until the first token was out
  double prefill_ms = 0, decode_ms = 0;  // steps in which it prefilled; decoded
  int prefill_steps = 0, decode_steps = 0;
  double prefill_tok_s = 0, decode_tok_s = 0;
};

struct TokenEvent {
  std::int32_t token = 0;
  float logprob = 0;
};

struct Finish {
  FinishReason reason = FinishReason::kStop;
  std::string error;  // kError only
  Usage usage;
  Timings timings;
  std::uint64_t seed = 0;
};

// Written by the engine thread, read by one other thread.
class TokenStream {
 public:
  // Blocks for the next token; none when the sequence has finished.
  std::optional<TokenEvent> next();
  // Blocks until the sequence has finished.
  const Finish& wait();
  // Asks the engine to stop; it does so before its next step.
  void cancel();
  // Logits of the positions asked for; complete when the sequence has finished.
  const std::map<int, std::vector<float>>& logits();

 private:
  friend class Engine;
  friend class Scheduler;
  void push(TokenEvent event);
  void add_logits(int position, std::vector<float> row);
  void close(Finish finish);
  bool cancelled() const;

  mutable std::mutex mutex_;
  std::condition_variable ready_;
  // Guarded by mutex_.
  std::vector<TokenEvent> events_;
  std::size_t read_ = 0;
  std::optional<Finish> finish_;
  std::map<int, std::vector<float>> logits_;
  bool cancelled_ = false;
};

}  // namespace vitrine
