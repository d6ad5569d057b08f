#include "tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>

#include "base/utf8.h"

namespace vitrine {
namespace {

constexpr std::size_t kFirstWindow = 512;
constexpr std::size_t kLargestWindow = 16 * 1024;
// Work a window may cost at worst is its length squared; this much per byte of text is allowed in
// total before windows stop growing.
constexpr std::uint64_t kWorkPerByte = 2048;

// End of the character class that starts at `at` ('['), or npos.
std::size_t class_end(std::string_view p, std::size_t at) {
  int depth = 0;
  for (std::size_t i = at; i < p.size(); ++i) {
    if (p[i] == '\\') {
      ++i;
    } else if (p[i] == '[') {
      ++depth;
    } else if (p[i] == ']') {
      if (--depth == 0) return i + 1;
    }
  }
  return std::string_view::npos;
}

std::string to_pcre2(std::string_view p);

// [A&&[B]] is Oniguruma's intersection: the same as a look-ahead for B before [A].
bool rewrite_intersection(std::string_view set, std::string& out) {
  std::size_t both = set.find("&&[");
  if (both == std::string_view::npos || set.substr(both + 3).find("&&") != std::string_view::npos)
    return false;
  std::string_view second = set.substr(both + 2, set.size() - both - 3);
  if (class_end(second, 0) != second.size()) return false;
  out += "(?:(?=";
  out += to_pcre2(second);
  out += ')';
  out += to_pcre2(std::string(set.substr(0, both)) + "]");
  out += ')';
  return true;
}

// What matching needs besides the pattern, one per thread.
struct Workspace {
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(32 * 1024, 1024 * 1024, nullptr);
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);

  Workspace() {
    pcre2_set_match_limit(context, 100'000);
    pcre2_set_depth_limit(context, 10'000);
    pcre2_set_heap_limit(context, 16 * 1024);
    pcre2_jit_stack_assign(context, nullptr, stack);
  }
  ~Workspace() {
    pcre2_match_data_free(data);
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
  }
};

// PCRE2's \w has no marks, and other numbers; this is the set of CharSet::add_word().
#define VT_WORD                                                                            \
  R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169})" \
  R"(\x{1F170}-\x{1F189}\x{200C}\x{200D})"

// The spelling for PCRE2 of the escape \c, or nothing when it is the same.
std::string_view escape_for_pcre2(char c, bool in_class) {
  switch (c) {
    case 'h':
      return in_class ? "0-9A-Fa-f" : "[0-9A-Fa-f]";
    case 'w':
      return in_class ? VT_WORD : "[" VT_WORD "]";
    case 'W':
      return in_class ? "" : "[^" VT_WORD "]";
    case 'b':
      return in_class ? ""
                      : "(?:(?<=[" VT_WORD "])(?![" VT_WORD "])|(?<![" VT_WORD "])(?=[" VT_WORD
                        "]))";
    default:
      return "";
  }
}

// \p{Han} is a script for Oniguruma and a set of script extensions for PCRE2. Length of such a
// property at the start of `p` ("\p{Han}"), or 0.
std::size_t script_length(std::string_view p) {
  static constexpr std::string_view kScripts[] = {
      "Han",  "Hiragana", "Katakana", "Hangul", "Latin",      "Greek",   "Cyrillic",
      "Thai", "Arabic",   "Hebrew",   "Lao",    "Devanagari", "Bengali", "Khmer"};
  if (!p.starts_with("\\p{") && !p.starts_with("\\P{")) return 0;
  std::size_t close = p.find('}');
  if (close == std::string_view::npos) return 0;
  bool known = std::find(std::begin(kScripts), std::end(kScripts), p.substr(3, close - 3)) !=
               std::end(kScripts);
  return known ? close + 1 : 0;
}

std::string to_pcre2(std::string_view p) {
  std::string out;
  int depth = 0;  // of character classes
  for (std::size_t i = 0; i < p.size();) {
    if (p[i] == '\\' && i + 1 < p.size()) {
      std::string_view other = escape_for_pcre2(p[i + 1], depth > 0);
      if (p[i + 1] == 'u' && i + 6 <= p.size() && p[i + 2] != '{') {
        out += "\\x{";
        out += p.substr(i + 2, 4);
        out += '}';
        i += 6;
      } else if (std::size_t length = script_length(p.substr(i)); length > 0) {
        out += p.substr(i, 3);
        out += "sc:";
        out += p.substr(i + 3, length - 3);
        i += length;
      } else {
        out += other.empty() ? p.substr(i, 2) : other;
        i += 2;
      }
      continue;
    }
    if (p[i] == '[') {
      std::size_t end = class_end(p, i);
      if (end != std::string_view::npos && rewrite_intersection(p.substr(i, end - i), out)) {
        i = end;
        continue;
      }
      ++depth;
    } else if (p[i] == ']' && depth > 0) {
      --depth;
    }
    out += p[i++];
  }
  return out;
}

}  // namespace

struct Regex::Code {
  pcre2_code* code = nullptr;
  ~Code() { pcre2_code_free(code); }
};

Regex::Regex(std::unique_ptr<Code> code) : code_(std::move(code)) {}
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

Result<Regex> Regex::compile(std::string_view pattern) {
  if (pattern.size() > 64 * 1024)
    return make_error(ErrorCode::kTooLarge, "a pattern of {} bytes; at most 65536 are allowed",
                      pattern.size());
  std::string text = to_pcre2(pattern);
  int error = 0;
  PCRE2_SIZE where = 0;
  auto code = std::make_unique<Code>();
  pcre2_compile_context* limits = pcre2_compile_context_create(nullptr);
  pcre2_set_newline(limits, PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(limits, 100);
  code->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                             PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                             &error, &where, limits);
  pcre2_compile_context_free(limits);
  if (code->code == nullptr) {
    PCRE2_UCHAR message[128] = {};
    pcre2_get_error_message(error, message, sizeof message);
    return make_error(ErrorCode::kUnsupported, "the pattern \"{}\" does not compile: {} at byte {}",
                      pattern.substr(0, 200), reinterpret_cast<const char*>(message), where);
  }
  pcre2_jit_compile(code->code, PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD);
  return Regex(std::move(code));
}

void Regex::find_all(std::string_view text, std::vector<Match>& out) const {
  auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  thread_local const Workspace work_space;
  const PCRE2_SIZE* vector = pcre2_get_ovector_pointer(work_space.data);
  std::uint64_t budget = kWorkPerByte * text.size() + (1u << 24);
  std::size_t at = 0, window = kFirstWindow;
  bool no_empty = false;  // an empty match was found at `at`
  while (at <= text.size()) {
    std::size_t end = std::min(text.size(), at + window);
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    bool whole = end == text.size();
    bool largest = window >= (budget > 0 ? kLargestWindow : kFirstWindow);
    std::uint32_t options = PCRE2_NO_UTF_CHECK | (no_empty ? PCRE2_NOTEMPTY_ATSTART : 0u) |
                            (whole || largest ? 0u : PCRE2_PARTIAL_HARD);
    int rc =
        pcre2_match(code_->code, subject, end, at, options, work_space.data, work_space.context);
    // What this call may have cost if every start was tried over the whole window.
    std::size_t reached = rc >= 0 || rc == PCRE2_ERROR_PARTIAL ? vector[0] : end;
    std::uint64_t work = (reached > at ? reached - at : 1) * static_cast<std::uint64_t>(end - at);
    budget -= std::min(budget, work);
    if (rc == PCRE2_ERROR_PARTIAL) {
      // No match starts before vector[0]; one may start there and go on past the window.
      if (vector[0] > at) no_empty = false;
      at = std::max<std::size_t>(at, vector[0]);
      window *= 2;
      continue;
    }
    if (rc >= 0 && vector[1] >= vector[0] && vector[0] >= at) {
      out.push_back(
          {{static_cast<std::uint32_t>(vector[0]), static_cast<std::uint32_t>(vector[1])}, false});
      no_empty = vector[1] == vector[0];
      at = vector[1];
    } else if (rc == PCRE2_ERROR_NOMATCH) {
      if (whole) break;
      at = end;
      no_empty = false;
    } else {
      // A limit was hit (or \K moved a match backwards): give this window up.
      std::size_t stop = std::min(end, at + kFirstWindow);
      while (stop < text.size() && (static_cast<unsigned char>(text[stop]) & 0xC0) == 0x80) ++stop;
      if (stop == at) break;
      out.push_back({{static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(stop)}, true});
      at = stop;
      no_empty = false;
    }
    window = kFirstWindow;
  }
}

std::string Regex::replace_all(std::string_view text, std::string_view content) const {
  std::vector<Match> matches;
  find_all(text, matches);
  std::string out;
  std::size_t at = 0;
  for (const Match& match : matches) {
    if (match.gave_up) continue;
    out += text.substr(at, match.span.begin - at);
    out += content;
    at = match.span.end;
  }
  out += text.substr(at);
  return out;
}

}  // namespace vitrine
