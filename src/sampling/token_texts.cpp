#include "sampling/token_texts.h"

#include <algorithm>

#include "base/check.h"

namespace vitrine {

TokenTexts::TokenTexts(const std::vector<std::string>& texts, std::vector<std::int32_t> ends)
    : ends_(std::move(ends)) {
  VT_CHECK(!ends_.empty(), "no token ends a text");
  std::sort(ends_.begin(), ends_.end());
  begins_.reserve(texts.size() + 1);
  std::size_t size = 0;
  for (const std::string& text : texts) size += text.size();
  VT_CHECK(size <= UINT32_MAX, "texts of {} bytes", size);
  all_.reserve(size);
  for (const std::string& text : texts) {
    begins_.push_back(static_cast<std::uint32_t>(all_.size()));
    all_ += text;
  }
  begins_.push_back(static_cast<std::uint32_t>(all_.size()));
}

std::string_view TokenTexts::text(std::int32_t id) const {
  const auto at = static_cast<std::size_t>(id);
  if (id < 0 || at + 1 >= begins_.size()) return {};
  return std::string_view(all_).substr(begins_[at], begins_[at + 1] - begins_[at]);
}

bool TokenTexts::ends(std::int32_t id) const {
  return std::binary_search(ends_.begin(), ends_.end(), id);
}

std::size_t TokenTexts::bytes() const {
  return sizeof(*this) + all_.capacity() + begins_.capacity() * sizeof(begins_[0]) +
         ends_.capacity() * sizeof(ends_[0]);
}

std::shared_ptr<const TokenTexts> TokenTextsSource::get(
    const std::function<std::vector<std::string>()>& texts,
    std::span<const std::int32_t> ends) const {
  std::lock_guard lock(mutex_);
  if (!made_)
    made_ = std::make_shared<const TokenTexts>(texts(),
                                               std::vector<std::int32_t>(ends.begin(), ends.end()));
  return made_;
}

}  // namespace vitrine
