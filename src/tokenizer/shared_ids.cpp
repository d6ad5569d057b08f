#include "tokenizer/shared_ids.h"

#include <algorithm>

#include "base/json.h"
#include "base/utf8.h"

namespace vitrine {
namespace {

std::string described(const Tokenizer& tokenizer, std::int32_t id) {
  const std::string text = utf8_sanitize(shortened(tokenizer.piece(id)));
  return fmt::format("{} ({})", to_json(json::value(text)), tokenizer.kind_of(id));
}

}  // namespace

Result<int> shared_ids(const Tokenizer& target, const std::string& target_name,
                       const Tokenizer& draft, const std::string& draft_name) {
  const std::int32_t shared = std::min(target.vocab_size(), draft.vocab_size());
  for (std::int32_t id = 0; id < shared; ++id)
    if (target.kind_of(id) != draft.kind_of(id) || target.piece(id) != draft.piece(id))
      return make_error(
          ErrorCode::kInvalid,
          "{} cannot draft for {}: token {} is {} in the draft and {} in the model; allowed is a "
          "draft whose tokens have the same bytes and kind for every id that both have",
          draft_name, target_name, id, described(draft, id), described(target, id));
  if (shared == 0)
    return make_error(ErrorCode::kInvalid, "{} cannot draft for {}: they have no token in common",
                      draft_name, target_name);
  return static_cast<int>(shared);
}

}  // namespace vitrine
