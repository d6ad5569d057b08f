// Cuts a normalized text into the words that the model encodes one by one.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "tokenizer/regex.h"
#include "tokenizer/scanner.h"
#include "tokenizer/unicode.h"
#include "tokenizer/word_splitter.h"

namespace vitrine {

// The pattern of GPT-2, which byte-level pre-tokenizers use unless told otherwise.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// What happens to the text that a pattern matches.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };
enum class PrependScheme { kAlways, kFirst, kNever };

class PreTokenizer {
 public:
  // Splits at matches of a regular expression: on a scanner when one covers it, else on PCRE2.
  Status add_regex(std::string_view pattern, SplitBehavior behavior, bool invert);
  void add_literal(std::string text, SplitBehavior behavior, bool invert);
  void add_scanner(Scanner scanner, SplitBehavior behavior, bool invert);
  // A space before every word that does not begin with one.
  void add_prefix_space();
  // Spells every byte in GPT-2's alphabet.
  void add_byte_level();
  // Spaces become `replacement`, which starts a new word.
  void add_metaspace(std::string replacement, PrependScheme scheme, bool split);
  void add_fixed_length(std::uint32_t length);
  std::size_t steps() const { return steps_.size(); }
  // When the only step is one well-known pattern: a faster way to the same words.
  const WordSplitter* splitter() const {
    return steps_.size() == 1 && splitter_ ? &*splitter_ : nullptr;
  }

  // Calls `word` for each word, in order. `text` is valid UTF-8 of less than 2^31 bytes;
  // `at_start`: it begins where the user's text begins.
  void run(std::string_view text, bool at_start,
           const std::function<void(std::string_view)>& word) const;
  // The same as a list: the text that the words are cut from, as the last step left it, and their
  // bytes in it.
  std::string cut(std::string_view text, bool at_start, std::vector<Span>& words) const;

 private:
  struct Split {
    std::variant<Scanner, Regex, std::string> pattern;
    SplitBehavior behavior;
    bool invert;
  };
  struct PrefixSpace {};
  struct ByteLevel {};
  struct Metaspace {
    std::string replacement;
    PrependScheme scheme;
    bool split;
  };
  struct FixedLength {
    std::uint32_t length;
  };
  using Step = std::variant<Split, PrefixSpace, ByteLevel, Metaspace, FixedLength>;
  struct Work;

  void process(std::string_view text, bool at_start, Work& work) const;
  void apply(const Split& step, Work& work) const;
  void apply(const PrefixSpace& step, Work& work) const;
  void apply(const ByteLevel& step, Work& work) const;
  void apply(const Metaspace& step, Work& work) const;
  void apply(const FixedLength& step, Work& work) const;

  std::vector<Step> steps_;
  std::optional<WordSplitter> splitter_;  // of the last regular expression
};

}  // namespace vitrine
