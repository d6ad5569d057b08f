// How many bytes an element type takes, for every type that a model file may name. Wider than the
// formats of quant/: a file with a type that has no decoder here still opens for inspection.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tensor/dtype.h"

namespace vitrine {

struct StorageType {
  DType dtype;
  const char* name;  // lower case: "iq4_xs"
  int block;         // elements per block
  int bytes;         // bytes per block
};

// Null when the number is not one of GGUF's tensor types.
const StorageType* find_ggml_type(std::uint32_t number);
// By the name in a safetensors header ("BF16"). Null when unknown.
const StorageType* find_safetensors_type(std::string_view name);

// "q4_k", "bf16", "iq4_xs"; "type N" for a number that is in no table.
std::string dtype_name(DType dtype);

}  // namespace vitrine
