// A Hugging Face model as the GGUF file that llama.cpp's converter makes of it: names, keys and
// what happens to the numbers.
#pragma once

#include "support/files.h"

namespace vitrine::test {

// Matrices are stored as `matrix_type`, vectors and learned positions as F32. Only architectures
// that GGUF has; see gguf_architecture().
GgufImage to_gguf(const json::object& config, const WeightMap& weights, DType matrix_type);

// "llama" for "LlamaForCausalLM"; "" when there is no such GGUF file.
std::string gguf_architecture(const json::object& config);

}  // namespace vitrine::test
