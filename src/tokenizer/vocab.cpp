#include "tokenizer/vocab.h"

#include <fmt/format.h>

#include <algorithm>

#include "tokenizer/hash.h"

namespace vitrine {

Vocab::Vocab() : seed_(hash_seed()), slots_(16, kNoToken) {}

void Vocab::set(std::int32_t id, std::string_view content, TokenKind kind) {
  if (id >= size()) entries_.resize(static_cast<std::size_t>(id) + 1);
  entries_[id] = {bytes_.size(), static_cast<std::uint32_t>(content.size()), kind};
  bytes_ += content;
  longest_ = std::max(longest_, content.size());
  if ((used_ + 1) * 2 > slots_.size()) grow();
  std::size_t slot = slot_of(content);
  if (slots_[slot] == kNoToken) {
    slots_[slot] = id;
    ++used_;
  }
}

std::size_t Vocab::slot_of(std::string_view wanted) const {
  std::size_t slot = hash_bytes(wanted, seed_) & (slots_.size() - 1);
  while (slots_[slot] != kNoToken && content(slots_[slot]) != wanted)
    slot = (slot + 1) & (slots_.size() - 1);
  return slot;
}

void Vocab::grow() {
  std::vector<std::int32_t> old = std::move(slots_);
  slots_.assign(old.size() * 2, kNoToken);
  for (std::int32_t id : old)
    if (id != kNoToken) slots_[slot_of(content(id))] = id;
}

std::int32_t Vocab::find(std::string_view content) const { return slots_[slot_of(content)]; }

std::int32_t Vocab::find_plain(std::string_view content) const {
  std::int32_t id = find(content);
  if (id == kNoToken || is_special(id) || kind(id) == TokenKind::kByte) return kNoToken;
  return id;
}

std::int32_t Vocab::find_byte(unsigned char byte) const {
  return find(fmt::format("<0x{:02X}>", byte));
}

int byte_token_value(std::string_view content) {
  if (content.size() != 6 || !content.starts_with("<0x") || content[5] != '>') return -1;
  int value = 0;
  for (char c : content.substr(3, 2)) {
    int digit = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                       : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

}  // namespace vitrine
