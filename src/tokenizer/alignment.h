// Which bytes of a text the bytes of its normalized form come from. Exact where both are the same;
// else both are read side by side, and where they differ the nearest place is looked for at which
// they agree again.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/unicode.h"

namespace vitrine {

class Alignment {
 public:
  Alignment(std::string_view text, std::string_view normalized);
  // Of a token's first byte, and of the byte after its last one.
  std::size_t begin(std::size_t at) const { return same_ ? at : sources_[at].begin; }
  std::size_t end(std::size_t at) const {
    return same_ ? at : at == 0 ? sources_[0].begin : sources_[at - 1].end;
  }

 private:
  bool same_;
  // By byte of the normalized text, and an empty one for its end. Empty: nothing of the text.
  std::vector<Span> sources_;
};

}  // namespace vitrine
