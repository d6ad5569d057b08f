// One choice of a call while it is being answered. Used by the exchange's coroutine only.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/request.h"
#include "server/answer/generation.h"
#include "server/texts.h"

namespace vitrine {

class ChoiceReader {
 public:
  // `first`: the stream of the prompt's first choice, which has the prompt's log probabilities.
  // `text`: at its beginning; none: the model has no tokenizer.
  ChoiceReader(const Call& call, std::optional<TextStream> text, int index,
               std::shared_ptr<TokenStream> stream, std::shared_ptr<TokenStream> first);

  // Goes on after tokens that are not shown.
  void follow(std::span<const std::int32_t> begun);
  // What is read is kept there too.
  void record(std::unique_ptr<Recording> recording) { recording_ = std::move(recording); }
  // Takes at most that many tokens of what the engine has made.
  void pump(std::size_t most);
  // More tokens can be taken without waiting.
  bool behind() const { return at_ < pending_.size(); }
  // Whether there is something for a frame.
  bool has_news() const;
  // What is new (all there is, when it is called once at the end). Valid until the next pump().
  Part take();

  int index() const { return index_; }
  int tokens() const { return tokens_; }
  bool closed() const { return finish_ != nullptr; }
  const Finish& finish() const { return *finish_; }  // closed() only
  bool stopped() const { return text_ && text_->stopped(); }
  // Ended by the engine without an answer: an error, or the server's shutdown.
  bool failed() const {
    return closed() && !stopped() &&
           (finish_->reason == FinishReason::kError || finish_->reason == FinishReason::kCancelled);
  }
  // Up to and including the token that completed a stop string.
  int completion_tokens() const;
  // Of its tokens, for best_of; an answer without tokens is the worst.
  double mean_logprob() const {
    return tokens_ > 0 ? logprobs_ / tokens_ : -std::numeric_limits<double>::infinity();
  }
  // Of completion_tokens() those that were reasoning.
  int reasoning_tokens() const { return reasoning_tokens_; }
  const std::vector<std::int64_t>& times() const { return times_; }
  TokenStream& stream() const { return *stream_; }
  const std::shared_ptr<TokenStream>& shared_stream() const { return stream_; }
  // Of memory, for what was read and not given out.
  std::size_t bytes() const;

 private:
  const PromptLogprobs* prompt_logprobs() const;
  // New text of the answer: as it is, or through the chat's parser.
  void read(const std::string& text);
  // Without parallel calls, the first call ends the answer.
  void end_with_call();
  // Of the token that was read last.
  SaidKind kind_of_token();
  std::vector<Part::CallPart> take_calls();
  const char* finish_name() const;
  bool has_output() const;

  const Call& call_;
  int index_, prompt_;
  std::shared_ptr<TokenStream> stream_, first_;
  std::optional<TextStream> text_;  // none: no tokenizer
  bool keep_tokens_;                // take() reports single tokens

  // Read from the stream; those before at_ have been taken.
  std::vector<TokenEvent> pending_;
  std::vector<TokenLogprob> pending_top_;
  std::size_t at_ = 0;
  bool ended_ = false;

  int tokens_ = 0;
  double logprobs_ = 0;                   // the sum
  int begun_ = 0;                         // tokens before these, which were not read here
  std::unique_ptr<AnswerParser> parser_;  // of a chat
  ChatOutput output_;                     // new; content is the text where there is no parser
  int calls_ = 0;                         // that have begun, of those given out
  bool called_ = false;                   // without parallel calls: the call is complete
  bool in_call_ = false;                  // a tool call has begun and not ended
  int reasoning_tokens_ = 0;
  std::unique_ptr<Recording> recording_;  // null: it is not kept
  std::vector<TokenEvent> events_;
  std::vector<TokenLogprob> top_;
  bool given_ = false;               // take() gave out events_ and top_
  std::size_t offset_ = 0;           // characters given out
  std::vector<std::int64_t> times_;  // of tokens, for the timings
  bool told_ = false, told_end_ = false;
  const Finish* finish_ = nullptr;
};

}  // namespace vitrine
