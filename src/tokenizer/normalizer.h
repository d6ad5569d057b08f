// Text normalization before tokenizing: Unicode forms, case, accents, replacements.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tokenizer/charsmap.h"
#include "tokenizer/regex.h"

namespace vitrine {

enum class UnicodeForm { kNfc, kNfd, kNfkc, kNfkd };
std::string to_unicode_form(std::string_view text, UnicodeForm form);

namespace norm {

struct Form {
  UnicodeForm form;
};
struct Prepend {
  std::string text;
};
struct Replace {
  std::string text, content;
};
struct ReplaceRegex {
  Regex regex;
  std::string content;
};
struct Lowercase {};
struct Strip {
  bool left, right;
};
struct StripAccents {};
struct ByteLevel {};
struct Nmt {};  // removes control characters, makes odd spaces plain
struct Bert {
  bool clean_text, chinese, strip_accents, lowercase;
};
struct Compiled {
  Charsmap map;
  bool graphemes;  // Hugging Face's way of applying it
};
// SentencePiece's spaces: escaped as U+2581, optionally one in front, runs collapsed and ends cut.
struct SpaceMarks {
  bool prefix, collapse;
};

using Step = std::variant<Form, Prepend, Replace, ReplaceRegex, Lowercase, Strip, StripAccents,
                          ByteLevel, Nmt, Bert, Compiled, SpaceMarks>;

}  // namespace norm

class Normalizer {
 public:
  void add(norm::Step step);
  bool empty() const { return steps_.empty(); }
  std::size_t steps() const { return steps_.size(); }
  // Valid UTF-8 in and out.
  std::string apply(std::string_view text) const;

 private:
  std::vector<norm::Step> steps_;
};

// Every occurrence of `text` (not empty) by `content`.
std::string replace_all(std::string_view from, std::string_view text, std::string_view content);

}  // namespace vitrine
