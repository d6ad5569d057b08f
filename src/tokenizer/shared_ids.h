// Whether two models speak of the same tokens, as a draft model and the model that it drafts for must.
#pragma once

#include "base/result.h"
#include "tokenizer/tokenizer.h"

namespace vitrine {

// How many ids, from 0 on, mean the same to both: equal bytes and equal kind for every id that both have. The
// error names the first that differs, and both of its texts. `names`: of the models, for it.
Result<int> shared_ids(const Tokenizer& target, const std::string& target_name,
                       const Tokenizer& draft, const std::string& draft_name);

}  // namespace vitrine
