#include "server/answer/choice_reader.h"

#include <algorithm>

#include "sampling/rng.h"
#include "server/answer/logprobs_json.h"

namespace vitrine {
namespace {

// Of one log probability in the answer: a token's text, its bytes, a number, names.
constexpr std::size_t kLogprobJson = 80;

// Nine letters and digits, as Mistral's templates require. Random, so that two of them do not tell
// how many calls came between them.
std::string new_call_id() {
  std::string out;
  for (std::uint64_t x = draw_seed(); out.size() < 9; x /= 36)
    out += "0123456789abcdefghijklmnopqrstuvwxyz"[x % 36];
  return out;
}

}  // namespace

ChoiceReader::ChoiceReader(const Call& call, std::optional<TextStream> text, int index,
                           std::shared_ptr<TokenStream> stream, std::shared_ptr<TokenStream> first)
    : call_(call),
      index_(index),
      prompt_(index / call.request.choices),
      stream_(std::move(stream)),
      first_(std::move(first)),
      text_(std::move(text)),
      keep_tokens_(call.request.logprobs || !text_) {
  if (!call.chat) return;
  parser_ = make_parser(call.chat->format, call.chat->tags, call.chat->in_reasoning);
  if (text_) text_->show(call.chat->shown);
}

void ChoiceReader::read(const std::string& text) {
  if (!parser_) {
    output_.content += text;
    return;
  }
  if (call_.chat->parallel) return parser_->push(text, output_);
  // Byte by byte: what follows the call in the same text is not read.
  for (std::size_t i = 0; i < text.size() && !called_; ++i) {
    parser_->push(std::string_view(text).substr(i, 1), output_);
    end_with_call();
  }
}

void ChoiceReader::end_with_call() {
  if (call_.chat->parallel) return;
  auto end = std::find_if(output_.calls.begin(), output_.calls.end(),
                          [](const CallPiece& piece) { return piece.ends; });
  if (end == output_.calls.end()) return;
  output_.calls.erase(end + 1, output_.calls.end());
  called_ = true;
  stream_->stop();
}

void ChoiceReader::follow(std::span<const std::int32_t> begun) {
  begun_ = static_cast<int>(begun.size());
  if (!text_) return;
  for (const std::int32_t id : begun) read(text_->push(id)), kind_of_token();
  output_ = {};
}

SaidKind ChoiceReader::kind_of_token() {
  if (!parser_) return SaidKind::kOutput;
  const bool was = in_call_;
  if (!output_.calls.empty()) in_call_ = !output_.calls.back().ends;
  if (was || in_call_) return SaidKind::kTool;
  return parser_->in_reasoning() ? SaidKind::kReasoning : SaidKind::kOutput;
}

std::vector<Part::CallPart> ChoiceReader::take_calls() {
  std::vector<Part::CallPart> out;
  for (CallPiece& piece : output_.calls) {
    if (!piece.begins && piece.arguments.empty()) continue;
    if (piece.begins) ++calls_;
    out.push_back({calls_ - 1, piece.begins ? new_call_id() : "", std::move(piece.name),
                   std::move(piece.arguments)});
  }
  return out;
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
    logprobs_ += event.logprob;
    if (text_) read(text_->push(event.token));
    if (parser_ && parser_->in_reasoning()) ++reasoning_tokens_;
    if (recording_) recording_->add(event, kind_of_token());
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
  if (text_) read(text_->finish());
  if (parser_ && !called_) {
    parser_->finish(output_);
    end_with_call();
  }
  finish_ = &stream_->wait();
  if (recording_) recording_->end(*finish_);
}

bool ChoiceReader::has_output() const {
  return !output_.content.empty() || !output_.reasoning.empty() ||
         std::any_of(output_.calls.begin(), output_.calls.end(), [](const CallPiece& piece) {
           return piece.begins || !piece.arguments.empty();
         });
}

bool ChoiceReader::has_news() const {
  if (told_end_) return false;
  return (closed() && !failed()) || has_output() || (!told_ && tokens_ > 0) ||
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
  part.text += output_.content;
  part.reasoning = std::move(output_.reasoning);
  part.calls = take_calls();
  part.tokens = events_;
  part.top = top_;
  if (closed() && !failed()) part.finish_reason = finish_name();
  part.scored = call_.request.beams.has_value();
  if (closed()) part.score = finish_->score;
  offset_ += count_characters(part.text);
  output_ = {};
  given_ = true;
  told_ = true;
  told_end_ = closed();
  return part;
}

std::size_t ChoiceReader::bytes() const {
  std::size_t sum = events_.capacity() * sizeof(TokenEvent) +
                    top_.capacity() * (sizeof(TokenLogprob) + kLogprobJson) +
                    times_.capacity() * sizeof(std::int64_t) + output_.content.capacity() +
                    output_.reasoning.capacity();
  for (const CallPiece& piece : output_.calls) sum += sizeof piece + piece.arguments.capacity();
  if (call_.request.prompt_logprobs && stream_ == first_)
    sum += call_.prompts[prompt_].size() * (sizeof(float) + sizeof(std::vector<TokenLogprob>) +
                                            static_cast<std::size_t>(call_.request.top_logprobs) *
                                                (sizeof(TokenLogprob) + kLogprobJson));
  return sum;
}

// They are complete once the prompt is: with the first token of any choice, or the end of the
// first.
const PromptLogprobs* ChoiceReader::prompt_logprobs() const {
  bool complete = tokens_ > 0 || call_.request.max_tokens == 0 || (closed() && stream_ == first_);
  return call_.request.prompt_logprobs && complete ? &first_->prompt_logprobs() : nullptr;
}

const char* ChoiceReader::finish_name() const {
  bool stop = stopped() || finish_->reason == FinishReason::kStop;
  if (stop && calls_ > 0) return "tool_calls";
  return stopped() ? "stop" : finish_reason_name(finish_->reason);
}

int ChoiceReader::completion_tokens() const {
  return stopped() ? text_->tokens() - begun_ : finish_->account.usage.completion_tokens;
}

}  // namespace vitrine
