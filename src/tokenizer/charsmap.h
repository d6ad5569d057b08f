// SentencePiece's compiled normalization rules: a double-array trie from byte strings to their
// replacements, as found in tokenizer.json ("Precompiled") and in GGUF files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace vitrine {

class Charsmap {
 public:
  // Little endian: u32 size of the trie in bytes, the trie, then NUL-terminated replacements.
  static Result<Charsmap> parse(std::string_view bytes);

  struct Match {
    std::size_t length;  // of the key, in bytes
    std::string_view replacement;
  };
  // The longest or the shortest key that `text` starts with.
  std::optional<Match> longest(std::string_view text) const { return search(text, true); }
  std::optional<Match> shortest(std::string_view text) const { return search(text, false); }

  // SentencePiece's way: the longest key at each place.
  std::string normalize(std::string_view text) const;
  // Hugging Face's way: by grapheme, the shortest key of it for the whole of a short grapheme.
  std::string normalize_graphemes(std::string_view text) const;

 private:
  std::optional<Match> search(std::string_view text, bool longest) const;
  std::vector<std::uint32_t> units_;
  std::string replacements_;
};

// Standard base64 with padding; nothing when it is not.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace vitrine
