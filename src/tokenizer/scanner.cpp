#include "tokenizer/scanner.h"

#include <algorithm>
#include <array>

namespace vitrine {
namespace {

using Arm = Scanner::Arm;
using Item = Scanner::Item;
using Shape = Scanner::Shape;
using Contractions = Scanner::Contractions;

constexpr std::uint32_t kNoMatch = ~0u;

// A maximal run of some set that was looked at before. Arms that may fail after a long run remember
// it, so that the next place in the same run costs nothing.
struct RunMemo {
  std::uint32_t begin = 1, end = 0;
  std::uint32_t last = kNoMatch;  // last character of the run that satisfies the arm's other set
  bool covers(std::uint32_t at) const { return begin <= at && at < end; }
};

class Cursor {
 public:
  Cursor(const Chars& chars, Span range) : chars_(chars), range_(range) {}

  bool is(std::uint32_t at, const CharSet& set) const {
    return at < range_.end && set.contains(chars_.code[at], chars_.category[at]);
  }
  char32_t code(std::uint32_t at) const { return at < range_.end ? chars_.code[at] : 0; }
  std::uint32_t end() const { return range_.end; }

  // First place at or after `at` outside the set, at most `max` on.
  std::uint32_t run(std::uint32_t at, const CharSet& set, std::uint32_t max = kNoMatch) const {
    std::uint32_t stop = max < range_.end - at ? at + max : range_.end;
    while (at < stop && set.contains(chars_.code[at], chars_.category[at])) ++at;
    return at;
  }
  // The memo of an arm for the run of `in(code, category)` at `at`; `mark` finds RunMemo::last.
  template <typename In, typename Mark>
  const RunMemo& memo(const Arm& arm, std::uint32_t at, In&& in, Mark&& mark) {
    RunMemo& memo = memos_[arm.memo];
    if (memo.covers(at)) return memo;
    memo = {at, at, kNoMatch};
    while (memo.end < range_.end && in(memo.end)) {
      if (mark(memo.end)) memo.last = memo.end;
      ++memo.end;
    }
    return memo;
  }
  const RunMemo& spaces(const Arm& arm, std::uint32_t at) {
    bool line_feed_only = arm.shape == Shape::kSpacesAtEnd;
    return memo(
        arm, at, [&](std::uint32_t i) { return is_space(chars_.code[i]); },
        [&](std::uint32_t i) {
          return chars_.code[i] == '\n' || (chars_.code[i] == '\r' && !line_feed_only);
        });
  }

 private:
  const Chars& chars_;
  Span range_;
  std::array<RunMemo, Scanner::kMostMemos> memos_;
};

std::uint32_t match_contraction(const Cursor& text, std::uint32_t at, Contractions kind) {
  if (text.code(at) != '\'') return kNoMatch;
  auto letter = [&](std::uint32_t i) -> char32_t {
    char32_t c = text.code(i);
    if (kind == Contractions::kFolded && c == 0x17F) return 's';  // the long s folds to s
    if (kind != Contractions::kLower && c >= 'A' && c <= 'Z') return c + 32;
    return c;
  };
  char32_t first = letter(at + 1), second = letter(at + 2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
  if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
      (first == 'l' && second == 'l'))
    return at + 3;
  return kNoMatch;
}

std::uint32_t match_run(const Cursor& text, std::uint32_t at, const Arm& arm) {
  const Item& body = arm.items[0];
  std::uint32_t end = text.run(at, body.set, body.max);
  if (end - at < body.min) return kNoMatch;
  if (arm.items.size() > 1) end = text.run(end, arm.items[1].set, arm.items[1].max);
  return end;
}

std::uint32_t match_two_runs(Cursor& text, std::uint32_t at, const Arm& arm) {
  if (at >= text.end()) return kNoMatch;
  const CharSet &first = arm.items[0].set, &second = arm.items[1].set;
  if (!text.is(at, first)) {
    std::uint32_t end = text.run(at, second);
    return end > at ? end : kNoMatch;
  }
  const RunMemo& run = text.memo(
      arm, at, [&](std::uint32_t i) { return text.is(i, first); },
      [&](std::uint32_t i) { return text.is(i, second); });
  if (text.is(run.end, second)) return text.run(run.end, second);
  // Give back from the first run up to its last character that the second accepts.
  return run.last != kNoMatch && run.last >= at ? run.last + 1 : kNoMatch;
}

std::uint32_t match_fixed(const Cursor& text, std::uint32_t at, const Arm& arm) {
  for (const Item& item : arm.items)
    if (!text.is(at++, item.set)) return kNoMatch;
  return at;
}

std::uint32_t match_with_lead(Cursor& text, std::uint32_t at, const Arm& arm) {
  auto rest = [&](std::uint32_t from) {
    return arm.shape == Shape::kTwoRuns ? match_two_runs(text, from, arm)
                                        : match_run(text, from, arm);
  };
  std::uint32_t end = kNoMatch;
  bool lead = arm.lead && text.is(at, arm.lead->set);
  if (lead) end = rest(at + 1);
  if (end == kNoMatch && (!arm.lead || (arm.lead->min == 0 && !(lead && arm.lead->possessive))))
    end = rest(at);
  if (end == kNoMatch || arm.contractions == Contractions::kNone) return end;
  std::uint32_t longer = match_contraction(text, end, arm.contractions);
  return longer == kNoMatch ? end : longer;
}

std::uint32_t match_spaces(Cursor& text, std::uint32_t at, const Arm& arm) {
  const RunMemo& run = text.spaces(arm, at);
  if (run.end == at || run.begin > at) return kNoMatch;
  bool to_end = run.end == text.end();
  switch (arm.shape) {
    case Shape::kLineEnds:
      return run.last != kNoMatch && run.last >= at ? run.last + 1 : kNoMatch;
    case Shape::kSpacesBefore:
      if (to_end) return run.end;
      return run.end - at > 1 ? run.end - 1 : kNoMatch;
    case Shape::kSpacesAtEnd:
      if (to_end) return run.end;
      return run.last != kNoMatch && run.last > at ? run.last : kNoMatch;
    default:
      return to_end ? run.end : kNoMatch;
  }
}

std::uint32_t match_digit_group(Cursor& text, std::uint32_t at, const Arm& arm) {
  const CharSet& digits = arm.items[0].set;
  if (!text.is(at, digits)) return kNoMatch;
  const RunMemo& run = text.memo(
      arm, at, [&](std::uint32_t i) { return text.is(i, digits); },
      [](std::uint32_t) { return false; });
  if (!arm.group_in_words && run.end < text.end() && is_word(text.code(run.end))) return kNoMatch;
  std::uint32_t rest = (run.end - at) % 3;
  return at + (rest == 0 ? 3 : rest);
}

std::uint32_t match(Cursor& text, std::uint32_t at, const Arm& arm) {
  switch (arm.shape) {
    case Shape::kRun:
    case Shape::kTwoRuns:
      return match_with_lead(text, at, arm);
    case Shape::kFixed:
      return match_fixed(text, at, arm);
    case Shape::kContraction:
      return match_contraction(text, at, arm.contractions);
    case Shape::kDigitGroups:
      return match_digit_group(text, at, arm);
    default:
      return match_spaces(text, at, arm);
  }
}

}  // namespace

void Scanner::find_all(const Chars& chars, Span range, std::vector<Span>& out) const {
  Cursor text(chars, range);
  for (std::uint32_t at = range.begin; at < range.end;) {
    std::uint32_t end = kNoMatch;
    for (std::size_t i = 0; i < arms_.size() && end == kNoMatch; ++i)
      end = match(text, at, arms_[i]);
    if (end == kNoMatch) {
      ++at;
    } else {
      out.push_back({at, end});
      at = end;
    }
  }
}

Scanner Scanner::each_of(CharSet set) {
  set.seal();
  Arm arm;
  arm.items.push_back({std::move(set), 1, 1, false});
  Scanner scanner;
  scanner.arms_.push_back(std::move(arm));
  return scanner;
}

}  // namespace vitrine
