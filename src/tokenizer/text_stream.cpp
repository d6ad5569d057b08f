#include "tokenizer/text_stream.h"

#include <algorithm>

#include "base/utf8.h"

namespace vitrine {
namespace {

StreamDecoder answer_decoder(const Tokenizer& tokenizer, std::span<const std::int32_t> prompt) {
  bool begins = std::all_of(prompt.begin(), prompt.end(),
                            [&](std::int32_t id) { return tokenizer.is_special(id); });
  return StreamDecoder(tokenizer, true, !begins);
}

// The failure function of Knuth, Morris and Pratt, by length.
std::vector<std::uint16_t> borders(std::string_view pattern) {
  std::vector<std::uint16_t> out(pattern.size() + 1, 0);
  std::size_t k = 0;
  for (std::size_t i = 1; i < pattern.size(); ++i) {
    while (k > 0 && pattern[i] != pattern[k]) k = out[k];
    if (pattern[i] == pattern[k]) ++k;
    out[i + 1] = static_cast<std::uint16_t>(k);
  }
  return out;
}

}  // namespace

Result<std::shared_ptr<const StopStrings>> StopStrings::make(std::vector<std::string> stops,
                                                             std::string_view what) {
  if (stops.size() > kMaxStops)
    return make_error(ErrorCode::kTooLarge, "{}: found {} strings, allowed up to {}", what,
                      stops.size(), kMaxStops);
  auto out = std::make_shared<StopStrings>();
  for (const std::string& stop : stops) {
    if (stop.empty() || stop.size() > kMaxBytes)
      return make_error(ErrorCode::kInvalid, "{}: found a string of {} bytes, allowed 1 to {}",
                        what, stop.size(), kMaxBytes);
    if (!utf8_valid(stop))
      return make_error(ErrorCode::kInvalid, "{}: found bytes that are not UTF-8, allowed text",
                        what);
    out->borders_.push_back(borders(stop));
  }
  out->stops_ = std::move(stops);
  return std::shared_ptr<const StopStrings>(std::move(out));
}

std::size_t StopStrings::advance(std::size_t i, std::size_t matched, char byte) const {
  const std::string& stop = stops_[i];
  if (matched == stop.size()) matched = borders_[i][matched];
  while (matched > 0 && stop[matched] != byte) matched = borders_[i][matched];
  return stop[matched] == byte ? matched + 1 : 0;
}

TextStream::TextStream(const Tokenizer& tokenizer, std::span<const std::int32_t> prompt,
                       std::shared_ptr<const StopStrings> stops, int min_tokens)
    : decoder_(answer_decoder(tokenizer, prompt)),
      stops_(std::move(stops)),
      min_tokens_(min_tokens),
      progress_(stops_ ? stops_->size() : 0, 0) {}

std::string TextStream::push(std::int32_t id) {
  if (stopped()) return {};
  ++tokens_;
  return scan(decoder_.push(id));
}

std::string TextStream::finish() {
  if (stopped()) return {};
  std::string text = scan(decoder_.finish());
  if (!stopped()) text += std::exchange(held_, {});
  return text;
}

std::string TextStream::scan(std::string text) {
  if (progress_.empty() || text.empty()) return text;
  std::size_t from = held_.size();
  held_ += text;
  std::size_t certain = 0;  // bytes that no stop can begin in any more
  for (std::size_t at = from; at < held_.size(); ++at) {
    std::size_t longest = 0;
    for (std::size_t i = 0; i < progress_.size(); ++i) {
      std::size_t& matched = progress_[i];
      matched = stops_->advance(i, matched, held_[at]);
      bool complete = matched == stops_->text(i).size() && tokens_ >= min_tokens_;
      if (complete && (matched_ == nullptr || matched_->size() < matched))
        matched_ = &stops_->text(i);
      longest = std::max(longest, matched);
    }
    if (stopped()) {
      held_.resize(at + 1 - matched_->size());
      return std::exchange(held_, {});
    }
    certain = at + 1 - longest;
  }
  std::string out = held_.substr(0, certain);
  held_.erase(0, certain);
  return out;
}

}  // namespace vitrine
