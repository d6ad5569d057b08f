#include "server/choice_reader.h"

#include "server/logprobs_json.h"

namespace vitrine {

ChoiceReader::ChoiceReader(const Call& call, const Tokenizer* tokenizer, int index,
                           std::shared_ptr<TokenStream> stream, std::shared_ptr<TokenStream> first)
    : call_(call),
      index_(index),
      prompt_(index / call.request.choices),
      stream_(std::move(stream)),
      first_(std::move(first)),
      keep_tokens_(call.request.logprobs || tokenizer == nullptr) {
  if (tokenizer != nullptr)
    text_.emplace(*tokenizer, call.prompts[prompt_], call.stops, call.request.min_tokens);
}

void ChoiceReader::pump() {
  if (closed()) return;
  if (std::exchange(given_, false)) events_.clear(), top_.clear();
  std::size_t kept = events_.size();
  bool end = stream_->read(events_, top_);
  for (; kept < events_.size() && !stopped(); ++kept) {
    ++tokens_;
    if (text_) new_text_ += text_->push(events_[kept].token);
    if (call_.timings) times_.push_back(events_[kept].at_ns);
  }
  if (stopped()) stream_->cancel();
  if (!keep_tokens_) kept = 0;
  events_.resize(kept);
  top_.resize(std::min(top_.size(), kept * static_cast<std::size_t>(call_.request.top_logprobs)));
  if (!end) return;
  if (text_) new_text_ += text_->finish();
  finish_ = &stream_->wait();
}

bool ChoiceReader::has_news() const {
  if (told_end_) return false;
  return (closed() && !failed()) || !new_text_.empty() || (!told_ && tokens_ > 0) ||
         (!given_ && !events_.empty());
}

Part ChoiceReader::take() {
  Part part;
  part.index = index_;
  part.first = !told_;
  part.offset = offset_;
  if (part.first && !call_.echoes.empty()) {
    part.text = call_.echoes[prompt_];
    part.prompt = call_.prompts[prompt_];
    part.prompt_logprobs = prompt_logprobs();
  }
  part.text += new_text_;
  part.tokens = events_;
  part.top = top_;
  if (closed() && !failed())
    part.finish_reason = stopped() ? "stop" : finish_reason_name(finish_->reason);
  offset_ += count_characters(part.text);
  new_text_.clear();
  given_ = true;
  told_ = true;
  told_end_ = closed();
  return part;
}

// They are complete once the prompt is: with the first token of any choice, or the end of the
// first.
const PromptLogprobs* ChoiceReader::prompt_logprobs() const {
  bool complete = tokens_ > 0 || call_.request.max_tokens == 0 || (closed() && stream_ == first_);
  return call_.request.prompt_logprobs && complete ? &first_->prompt_logprobs() : nullptr;
}

int ChoiceReader::completion_tokens() const {
  return stopped() ? text_->tokens() : finish_->account.usage.completion_tokens;
}

}  // namespace vitrine
