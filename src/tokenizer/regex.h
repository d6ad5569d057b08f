// A pattern from a tokenizer file, run by PCRE2 with bounded work.
//
// Patterns are written for Oniguruma; the few spellings that differ are rewritten. PCRE2
// backtracks, so a pattern and a text could be chosen to take quadratic or exponential time.
// Matching therefore runs in windows that grow only while a match reaches their end, under PCRE2's
// match limit; where the limit is hit the stretch of text is reported and the caller cuts it some
// other way.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/unicode.h"

namespace vitrine {

class Regex {
 public:
  // kUnsupported with PCRE2's words when the pattern does not compile.
  static Result<Regex> compile(std::string_view pattern);
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  struct Match {
    Span span;     // bytes
    bool gave_up;  // not a match: a stretch on which the limit was hit
  };
  // All matches in order, without overlap; empty matches are included. `text` is valid UTF-8 of
  // less than 2^31 bytes. Thread-safe.
  void find_all(std::string_view text, std::vector<Match>& out) const;
  // `text` with every match replaced; stretches that were given up stay as they are.
  std::string replace_all(std::string_view text, std::string_view content) const;

 private:
  struct Code;
  explicit Regex(std::unique_ptr<Code> code);
  std::unique_ptr<Code> code_;
};

}  // namespace vitrine
