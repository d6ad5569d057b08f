// The split patterns of GPT-2, Llama 3, Qwen 2 and similar ones, hand-written over UTF-8.
//
// They are one pattern with a few differences (Rules). A word is found from the class of its first
// two characters and then the end of a run: no backtracking, no list of alternatives, no decoded
// copy of the text. Other patterns are left to Scanner and PCRE2, which split these alike (tested).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace vitrine {

class WordSplitter {
 public:
  // The splitter of a pattern, known by its text; nothing when there is none.
  static std::optional<WordSplitter> from_pattern(std::string_view pattern);

  // Where the word that begins at `at` (< size) ends. `text` is valid UTF-8. The words of a text
  // cover it.
  std::size_t next(std::string_view text, std::size_t at) const;
  template <typename F>
  void for_each(std::string_view text, F&& word) const {
    for (std::size_t at = 0; at < text.size();) {
      std::size_t end = next(text, at);
      word(text.substr(at, end - at));
      at = end;
    }
  }

 private:
  using Byte = unsigned char;
  enum class CharClass : std::uint8_t { kLetter, kMark, kNumber, kSpace, kLineEnd, kOther };
  enum class Contractions : std::uint8_t { kLower, kAnyCase, kFolded };
  struct Rules {
    Contractions contractions = Contractions::kFolded;
    std::uint32_t digits = 3;  // most numbers in a word
    bool marks = false;        // combining marks count as letters
    bool any_lead = true;      // a word takes any character but \r, \n before it, not only a space
    bool space_numbers = false;  // numbers take a space before them
    bool line_ends = true;       // they end a word of white space, and follow other characters
  };
  struct Char {
    CharClass kind;
    int length;
  };
  static const CharClass* class_table();
  static CharClass class_of(char32_t code);

  explicit WordSplitter(Rules rules) : rules_(rules), classes_(class_table()) {}
  Char char_at(const Byte* p) const;
  bool is_letter(CharClass c) const {
    return c == CharClass::kLetter || (c == CharClass::kMark && rules_.marks);
  }
  bool is_other(CharClass c) const {
    return c == CharClass::kOther || (c == CharClass::kMark && !rules_.marks);
  }
  const Byte* contraction(const Byte* p, const Byte* end) const;
  const Byte* letters(const Byte* p, const Byte* end) const;
  const Byte* numbers(const Byte* p, const Byte* end) const;
  const Byte* others(const Byte* p, const Byte* end) const;
  const Byte* spaces(const Byte* p, const Byte* end) const;

  Rules rules_;
  const CharClass* classes_;  // of the code points below kTableSize
};

}  // namespace vitrine
