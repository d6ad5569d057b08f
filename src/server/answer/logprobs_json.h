// Log probabilities in the shapes of OpenAI's two endpoints.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"
#include "server/answer/generation.h"
#include "tokenizer/tokenizer.h"

namespace vitrine {

// Unicode characters of UTF-8 text, or of parts of it that add up.
std::size_t count_characters(std::string_view text);

// {"tokens", "token_logprobs", "top_logprobs", "text_offset"}, the prompt's first when it is
// echoed. A token that is not whole characters is shown as "bytes:\xe2\x80", without a tokenizer as
// "token_id:7".
std::string completion_logprobs(const Call& call, const Tokenizer* tokenizer, const Part& part);
// {"content": [{"token", "logprob", "bytes", "top_logprobs"}], "refusal": null}
std::string chat_logprobs(const Call& call, const Tokenizer* tokenizer, const Part& part);

}  // namespace vitrine
