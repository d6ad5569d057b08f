// How many bytes an element type takes, for every type that a model file may name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tensor/ggml_types.h"

namespace vitrine {

// Null when the number is not one of GGUF's tensor types.
const StorageType* find_ggml_type(std::uint32_t number);
// By the name in a safetensors header ("BF16"). Null when unknown.
const StorageType* find_safetensors_type(std::string_view name);

// "bf16", "iq4_xs"; "type N" for a number that is in no table.
std::string dtype_name(DType dtype);

}  // namespace vitrine
