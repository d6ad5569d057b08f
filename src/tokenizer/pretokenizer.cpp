#include "tokenizer/pretokenizer.h"

#include <algorithm>

#include "tokenizer/bpe.h"

namespace vitrine {
namespace {

// Cuts text on which a pattern hit its limit.
const Scanner& fallback_scanner() {
  static const Scanner scanner = *Scanner::from_pattern(kGpt2Pattern);
  return scanner;
}

// Index of the first character at or after byte `offset`, searching from `from`.
std::uint32_t char_at(const Chars& chars, std::uint32_t offset, std::uint32_t from) {
  while (chars.offset[from] < offset) ++from;
  return from;
}

void find_regex(const Regex& regex, const Chars& chars, Span range, std::vector<Span>& out) {
  std::vector<Regex::Match> matches;
  regex.find_all(chars.slice(range.begin, range.end), matches);
  std::uint32_t base = chars.offset[range.begin], at = range.begin;
  for (const Regex::Match& match : matches) {
    std::uint32_t begin = char_at(chars, base + match.span.begin, at);
    std::uint32_t end = char_at(chars, base + match.span.end, begin);
    at = end;
    if (match.gave_up)
      fallback_scanner().find_all(chars, {begin, end}, out);
    else
      out.push_back({begin, end});
  }
}

void find_literal(const std::string& text, const Chars& chars, Span range, std::vector<Span>& out) {
  if (text.empty()) return;
  std::string_view slice = chars.slice(range.begin, range.end);
  std::uint32_t base = chars.offset[range.begin], at = range.begin;
  for (std::size_t i = 0; (i = slice.find(text, i)) != std::string_view::npos; i += text.size()) {
    std::uint32_t begin = char_at(chars, base + static_cast<std::uint32_t>(i), at);
    at = char_at(chars, base + static_cast<std::uint32_t>(i + text.size()), begin);
    out.push_back({begin, at});
  }
}

struct Part {
  Span span;
  bool match;
};

// `matches` and the gaps between them, covering `range`.
void cover(Span range, const std::vector<Span>& matches, bool invert, std::vector<Part>& parts) {
  std::uint32_t at = range.begin;
  for (Span span : matches) {
    if (span.begin > at) parts.push_back({{at, span.begin}, invert});
    if (span.end > span.begin || !invert) parts.push_back({span, !invert});
    at = span.end;
  }
  if (at < range.end) parts.push_back({{at, range.end}, invert});
}

void emit(const std::vector<Part>& parts, SplitBehavior behavior, std::vector<Span>& out) {
  std::size_t first = out.size();
  bool previous = false;
  auto join_previous = [&](const Part& part, bool join) {
    if (join && out.size() > first)
      out.back().end = part.span.end;
    else
      out.push_back(part.span);
    previous = part.match;
  };
  switch (behavior) {
    case SplitBehavior::kRemoved:
      for (const Part& part : parts)
        if (!part.match) out.push_back(part.span);
      break;
    case SplitBehavior::kIsolated:
      for (const Part& part : parts) out.push_back(part.span);
      break;
    case SplitBehavior::kContiguous:
      for (const Part& part : parts) join_previous(part, part.match == previous);
      break;
    case SplitBehavior::kMergedWithPrevious:
      for (const Part& part : parts) join_previous(part, part.match && !previous);
      break;
    case SplitBehavior::kMergedWithNext:
      for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
        if (part->match && !previous && out.size() > first)
          out.back().begin = part->span.begin;
        else
          out.push_back(part->span);
        previous = part->match;
      }
      std::reverse(out.begin() + static_cast<std::ptrdiff_t>(first), out.end());
      break;
  }
  out.erase(std::remove_if(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(),
                           [](Span span) { return span.begin == span.end; }),
            out.end());
}

}  // namespace

// The text as it is now, and the words found in it so far.
struct PreTokenizer::Work {
  Chars chars;
  std::string text;  // owns chars.text once a step has changed it
  std::vector<Span> words;
  bool at_start = false;

  // Replaces every word by what `change(word, index, out)` appends.
  template <typename Change>
  void rewrite(Change&& change) {
    std::string next;
    std::vector<std::size_t> ends;
    next.reserve(chars.text.size() + chars.text.size() / 8);
    for (std::size_t i = 0; i < words.size(); ++i) {
      change(chars.slice(words[i].begin, words[i].end), i, next);
      ends.push_back(next.size());
    }
    text = std::move(next);
    chars.assign(text);
    std::uint32_t at = 0;
    for (std::size_t i = 0; i < words.size(); ++i) {
      std::uint32_t end = char_at(chars, static_cast<std::uint32_t>(ends[i]), at);
      words[i] = {at, end};
      at = end;
    }
  }
};

Status PreTokenizer::add_regex(std::string_view pattern, SplitBehavior behavior, bool invert) {
  if (behavior == SplitBehavior::kIsolated && !invert)
    splitter_ = WordSplitter::from_pattern(pattern);
  if (std::optional<Scanner> scanner = Scanner::from_pattern(pattern)) {
    add_scanner(std::move(*scanner), behavior, invert);
    return Ok{};
  }
  VT_TRY(Regex regex, Regex::compile(pattern));
  steps_.push_back(Split{std::move(regex), behavior, invert});
  return Ok{};
}

void PreTokenizer::add_scanner(Scanner scanner, SplitBehavior behavior, bool invert) {
  steps_.push_back(Split{std::move(scanner), behavior, invert});
}
void PreTokenizer::add_literal(std::string text, SplitBehavior behavior, bool invert) {
  steps_.push_back(Split{std::move(text), behavior, invert});
}
void PreTokenizer::add_prefix_space() { steps_.push_back(PrefixSpace{}); }
void PreTokenizer::add_byte_level() { steps_.push_back(ByteLevel{}); }
void PreTokenizer::add_metaspace(std::string replacement, PrependScheme scheme, bool split) {
  steps_.push_back(Metaspace{std::move(replacement), scheme, split});
}
void PreTokenizer::add_fixed_length(std::uint32_t length) { steps_.push_back(FixedLength{length}); }

void PreTokenizer::apply(const Split& step, Work& work) const {
  std::vector<Span> result, matches;
  std::vector<Part> parts;
  result.reserve(work.words.size());
  for (Span word : work.words) {
    matches.clear();
    parts.clear();
    if (const auto* scanner = std::get_if<Scanner>(&step.pattern))
      scanner->find_all(work.chars, word, matches);
    else if (const auto* regex = std::get_if<Regex>(&step.pattern))
      find_regex(*regex, work.chars, word, matches);
    else
      find_literal(std::get<std::string>(step.pattern), work.chars, word, matches);
    cover(word, matches, step.invert, parts);
    emit(parts, step.behavior, result);
  }
  work.words = std::move(result);
}

void PreTokenizer::apply(const PrefixSpace&, Work& work) const {
  work.rewrite([](std::string_view word, std::size_t, std::string& out) {
    if (!word.starts_with(' ')) out += ' ';
    out += word;
  });
}

void PreTokenizer::apply(const ByteLevel&, Work& work) const {
  work.rewrite(
      [](std::string_view word, std::size_t, std::string& out) { out += byte_level_encode(word); });
}

void PreTokenizer::apply(const Metaspace& step, Work& work) const {
  work.rewrite([&](std::string_view word, std::size_t index, std::string& out) {
    bool wanted = step.scheme == PrependScheme::kAlways ||
                  (step.scheme == PrependScheme::kFirst && index == 0 && work.at_start);
    if (wanted && !word.starts_with(' ') && !word.starts_with(step.replacement))
      out += step.replacement;
    for (char c : word) {
      if (c == ' ')
        out += step.replacement;
      else
        out += c;
    }
  });
  if (!step.split) return;
  Split split{step.replacement, SplitBehavior::kMergedWithNext, false};
  apply(split, work);
}

void PreTokenizer::apply(const FixedLength& step, Work& work) const {
  std::vector<Span> result;
  for (Span word : work.words)
    for (std::uint32_t at = word.begin; at < word.end;) {
      std::uint32_t end = step.length < word.end - at ? at + step.length : word.end;
      result.push_back({at, end});
      at = end;
    }
  work.words = std::move(result);
}

void PreTokenizer::process(std::string_view text, bool at_start, Work& work) const {
  work.at_start = at_start;
  work.chars.assign(text);
  work.words = {{0, work.chars.size()}};
  for (const Step& step : steps_) std::visit([&](const auto& s) { apply(s, work); }, step);
}

void PreTokenizer::run(std::string_view text, bool at_start,
                       const std::function<void(std::string_view)>& word) const {
  if (text.empty()) return;
  if (steps_.empty()) return word(text);
  Work work;
  process(text, at_start, work);
  for (Span span : work.words) word(work.chars.slice(span.begin, span.end));
}

std::string PreTokenizer::cut(std::string_view text, bool at_start,
                              std::vector<Span>& words) const {
  words.clear();
  if (text.empty()) return {};
  if (steps_.empty()) {
    words.push_back({0, static_cast<std::uint32_t>(text.size())});
    return std::string(text);
  }
  Work work;
  process(text, at_start, work);
  for (Span span : work.words)
    words.push_back({work.chars.offset[span.begin], work.chars.offset[span.end]});
  return std::string(work.chars.text);
}

}  // namespace vitrine
