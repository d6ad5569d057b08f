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

void ChoiceReader::pump(std::size_t most) {
  if (closed()) return;
  if (std::exchange(given_, false)) events_.clear(), top_.clear();
  if (!behind()) {
    pending_.clear(), pending_top_.clear(), at_ = 0;
    ended_ = stream_->read(pending_, pending_top_);
  }
  for (; most > 0 && behind() && !stopped(); --most, ++at_) {
    const TokenEvent& event = pending_[at_];
    ++tokens_;
    if (text_) new_text_ += text_->push(event.token);
    if (call_.timings) times_.push_back(event.at_ns);
    if (!keep_tokens_) continue;
    auto k = static_cast<std::ptrdiff_t>(call_.request.top_logprobs);
    auto top = pending_top_.begin() + static_cast<std::ptrdiff_t>(at_) * k;
    events_.push_back(event);
    top_.insert(top_.end(), top, top + k);
  }
  if (stopped()) {
    stream_->stop();
    at_ = pending_.size();
  }
  if (!ended_ || behind()) return;
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
