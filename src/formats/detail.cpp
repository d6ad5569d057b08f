#include "formats/detail.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace vitrine::detail {

std::string quote_name(std::string_view name) {
  constexpr std::size_t kShown = 96;
  std::string text = utf8_sanitize(name.substr(0, kShown));
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  return fmt::format("'{}{}'", text, name.size() > kShown ? "..." : "");
}

bool printable(std::string_view name) {
  return !name.empty() && utf8_valid(name) && std::none_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
  });
}

}  // namespace vitrine::detail
