// The tokens of a tokenizer: id <-> content, and what kind each is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vitrine {

enum class TokenKind : std::uint8_t {
  kMissing,  // no token has this id
  kNormal,
  kUnknown,      // stands for what cannot be encoded
  kControl,      // special: BOS, <|im_end|>...
  kUserDefined,  // added, not special
  kUnused,
  kByte,  // "<0x0A>"
};

inline constexpr std::int32_t kNoToken = -1;

class Vocab {
 public:
  Vocab();

  // Defines token `id` (>= 0, bounded by the loader). The first token of a content is the one
  // found.
  void set(std::int32_t id, std::string_view content, TokenKind kind);
  void set_kind(std::int32_t id, TokenKind kind) { entries_[id].kind = kind; }

  std::int32_t size() const { return static_cast<std::int32_t>(entries_.size()); }
  bool has(std::int32_t id) const {
    return id >= 0 && id < size() && entries_[id].kind != TokenKind::kMissing;
  }
  std::string_view content(std::int32_t id) const {
    return std::string_view(bytes_).substr(entries_[id].begin, entries_[id].length);
  }
  TokenKind kind(std::int32_t id) const { return entries_[id].kind; }
  bool is_special(std::int32_t id) const {
    return has(id) && (kind(id) == TokenKind::kControl || kind(id) == TokenKind::kUnknown);
  }
  // kNoToken when there is none.
  std::int32_t find(std::string_view content) const;
  // The same for text from a user: special and byte tokens are not found by their spelling.
  std::int32_t find_plain(std::string_view content) const;
  // The token that stands for a byte ("<0x0A>"), or kNoToken.
  std::int32_t find_byte(unsigned char byte) const;
  std::size_t longest() const { return longest_; }

 private:
  struct Entry {
    std::size_t begin = 0;
    std::uint32_t length = 0;
    TokenKind kind = TokenKind::kMissing;
  };
  std::size_t slot_of(std::string_view content) const;
  void grow();

  std::uint64_t seed_;
  std::string bytes_;
  std::vector<Entry> entries_;
  std::vector<std::int32_t> slots_;  // open addressing; kNoToken is an empty slot
  std::size_t used_ = 0, longest_ = 0;
};

// The value of a byte token's content ("<0x0A>", exactly two hex digits), or -1.
int byte_token_value(std::string_view content);

}  // namespace vitrine
