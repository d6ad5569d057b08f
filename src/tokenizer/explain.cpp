// Tokenizer::explain and place: the pipeline of `encode` once more, with everything written down. No
// caches, no fast splitter; the tests and a fuzzer hold it to the same ids.
#include <algorithm>

#include "base/utf8.h"
#include "tokenizer/alignment.h"
#include "tokenizer/explanation.h"
#include "tokenizer/parts.h"
#include "tokenizer/tokenizer.h"

namespace vitrine {
namespace {

// Rewriting may make a text longer, by so much at most.
constexpr std::size_t kMostGrowth = 8;

class Telling {
 public:
  Telling(const TokenizerParts& parts, bool special, bool steps, std::size_t most,
          TextExplanation& out)
      : parts_(parts), special_(special), steps_(steps), most_(most), out_(out) {}

  // False: the normalized text is longer than allowed.
  bool tell(std::string_view text, const std::vector<AddedTokens::Segment>& segments) {
    for (const AddedTokens::Segment& segment : segments) {
      auto from = static_cast<std::size_t>(segment.text.data() - text.data());
      if (segment.token != kNoToken)
        tell_added(segment, {from, from + segment.text.size()});
      else if (!tell_plain(segment.text, from))
        return false;
    }
    return true;
  }
  void forget_special() { special_ = false; }

 private:
  void tell_added(const AddedTokens::Segment& segment, ByteSpan source) {
    ExplainedWord& word = out_.words.emplace_back();
    word.begin = out_.normalized.size();
    out_.normalized += segment.text;
    word.end = out_.normalized.size();
    word.way = WordWay::kAdded;
    word.tokens.push_back({word.begin, word.end, segment.token});
    out_.sources.push_back({source.begin, source.end, segment.token});
  }

  bool tell_plain(std::string_view text, std::size_t from) {
    const std::string normalized = parts_.normalizer.apply(text);
    std::vector<AddedTokens::Segment> segments;
    parts_.added.split(normalized, AddedTokens::Stage::kNormalized, special_, segments);
    const std::size_t base = out_.normalized.size(), first = out_.words.size();
    for (const AddedTokens::Segment& segment : segments) {
      if (out_.normalized.size() + segment.text.size() > most_) return false;
      if (segment.token != kNoToken) {
        tell_added(segment, {0, 0});
        out_.sources.pop_back();  // found below, with the others
        continue;
      }
      tell_words(segment.text, from == 0 && segment.text.data() == normalized.data());
      if (out_.normalized.size() > most_) return false;
    }
    find_sources(text, from, base, first);
    return true;
  }

  void tell_words(std::string_view text, bool at_start) {
    std::vector<Span> words;
    const std::string cut = parts_.pre_tokenizer.cut(text, at_start, words);
    const std::size_t base = out_.normalized.size();
    out_.normalized += cut;
    for (Span span : words) {
      std::string_view word = std::string_view(cut).substr(span.begin, span.end - span.begin);
      const std::size_t first = out_.words.size();
      parts_.model->explain(word, steps_, out_.words);
      for (std::size_t i = first; i < out_.words.size(); ++i)
        move(out_.words[i], base + span.begin);
    }
  }

  void move(ExplainedWord& word, std::size_t by) const {
    word.begin += by, word.end += by;
    auto placed = [&](std::vector<PlacedToken>& list) {
      for (PlacedToken& token : list) token.begin += by, token.end += by;
    };
    placed(word.tokens);
    if (!steps_) {
      word.start = {}, word.merges = {}, word.candidates = {};
      return;
    }
    placed(word.start);
    for (TokenCandidate& candidate : word.candidates) candidate.begin += by, candidate.end += by;
  }

  // Of the tokens of words from `first` on, which were made of `text`, at `from` in the whole text.
  void find_sources(std::string_view text, std::size_t from, std::size_t base, std::size_t first) {
    const Alignment back(text, std::string_view(out_.normalized).substr(base));
    for (std::size_t i = first; i < out_.words.size(); ++i)
      for (const PlacedToken& token : out_.words[i].tokens)
        out_.sources.push_back(
            {from + back.begin(token.begin - base), from + back.end(token.end - base), token.id});
  }

  const TokenizerParts& parts_;
  bool special_, steps_;
  std::size_t most_;
  TextExplanation& out_;
};

Error too_long(std::size_t found, std::size_t most) {
  return make_error(ErrorCode::kTooLarge,
                    "the text has {} bytes; up to {} can be explained token by token", found, most);
}
Error grows_too_long(std::size_t most) {
  return make_error(ErrorCode::kTooLarge,
                    "the text has over {} bytes after normalization, which is more than can be "
                    "explained token by token",
                    most);
}

}  // namespace

const char* word_way_name(WordWay way) {
  switch (way) {
    case WordWay::kAdded:
      return "added";
    case WordWay::kWhole:
      return "whole";
    case WordWay::kMerges:
      return "merges";
    case WordWay::kLattice:
      return "lattice";
    case WordWay::kMatches:
      return "matches";
    case WordWay::kUnknown:
      return "unknown";
  }
  return "";
}

std::vector<std::int32_t> TextExplanation::ids() const {
  std::vector<std::int32_t> out = prefix;
  for (const ExplainedWord& word : words)
    for (const PlacedToken& token : word.tokens) out.push_back(token.id);
  out.insert(out.end(), suffix.begin(), suffix.end());
  return out;
}

Result<TextExplanation> Tokenizer::explain(std::string_view text, EncodeOptions options) const {
  if (text.size() > kMostExplained) return too_long(text.size(), kMostExplained);
  TextExplanation out;
  if (options.add_special) out.prefix = parts_->prefix, out.suffix = parts_->suffix;
  const std::string clean = utf8_valid(text) ? std::string(text) : utf8_sanitize(text);
  std::vector<AddedTokens::Segment> segments;
  parts_->added.split(clean, AddedTokens::Stage::kRaw, options.parse_special, segments);
  constexpr std::size_t kMost = kMostExplained * kMostGrowth;
  if (!Telling(*parts_, options.parse_special, true, kMost, out).tell(clean, segments))
    return grows_too_long(kMost);
  return out;
}

Result<TextExplanation> Tokenizer::place(std::string_view text, EncodeOptions options,
                                         std::span<const ByteSpan> words) const {
  if (text.size() > kMostPlaced) return too_long(text.size(), kMostPlaced);
  TextExplanation out;
  if (options.add_special) out.prefix = parts_->prefix, out.suffix = parts_->suffix;
  const bool valid = utf8_valid(text);
  const std::string clean = valid ? std::string(text) : utf8_sanitize(text);
  constexpr std::size_t kMost = kMostPlaced * kMostGrowth;
  Telling telling(*parts_, valid, false, kMost, out);
  std::vector<AddedTokens::Segment> segments;
  if (valid && parts_->added.spell_special(clean, words, parts_->normalizer)) {
    parts_->added.split_around(clean, words, segments);
    telling.forget_special();
  } else {
    parts_->added.split(clean, AddedTokens::Stage::kRaw, valid, segments);
  }
  if (!telling.tell(clean, segments)) return grows_too_long(kMost);
  return out;
}

}  // namespace vitrine
