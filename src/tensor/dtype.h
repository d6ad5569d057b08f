// Element types. The number of a type is its ggml number, so that a GGUF file's tag is the DType;
// types that ggml does not have start at 1000. Only plain types are named here: ggml_types.h has
// the numbers of all, and which of them have a format is known to quant/ alone.
#pragma once

#include <cstdint>

namespace vitrine {

enum class DType : std::uint16_t {
  kF32 = 0,
  kF16 = 1,
  kI8 = 24,
  kI16 = 25,
  kI32 = 26,
  kI64 = 27,
  kF64 = 28,
  kBF16 = 30,
  kU8 = 1000,
  kBool = 1001,
  kF8E4M3 = 1002,
  kF8E5M2 = 1003,
  kU16 = 1004,
  kU32 = 1005,
  kU64 = 1006,
};

}  // namespace vitrine
