// Texts that are kept, as JSON.
#pragma once

#include <span>
#include <string>

#include "base/json.h"
#include "sampling/params.h"
#include "server/texts.h"

namespace vitrine {

class Tokenizer;

// A token as text: whole characters, replaced where the bytes are none. Empty without a tokenizer.
std::string token_text(const Tokenizer* tokenizer, std::int32_t id);
json::array token_bytes(const Tokenizer* tokenizer, std::int32_t id);
// Every parameter, the order of the transforms ("samplers") and the biases.
json::object sampling_json(const SamplingParams& params);
// What is known about the text but for its tokens. Numbers of requests are an operator's (`all`).
json::object text_json(const Text& text, std::span<const std::uint64_t> forks, bool all);
// The token at a position: {id, text, bytes, kind, message, at_ns, logprob}.
json::object text_token_json(const Text& text, const Tokenizer* tokenizer, int position);

}  // namespace vitrine
