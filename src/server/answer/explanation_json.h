// How a text became tokens, and whose they are, as JSON.
#pragma once

#include "chat/prompt_spans.h"
#include "server/answer/pieces.h"
#include "tokenizer/explanation.h"

namespace vitrine {

// ,"normalized":..,"prefix":..,"suffix":..,"words":[..] Returns the bytes that the pieces keep.
std::size_t add_explanation(Pieces& out, TextExplanation explanation);
// ,"spans":[..],"token_spans":[..],"token_bytes":[..]
std::size_t add_spans(Pieces& out, PromptSpans spans);

}  // namespace vitrine
