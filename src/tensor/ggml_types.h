// Every tensor type that a GGUF file may name: ggml's number, name and block sizes. The only place
// for these numbers. Wider than the formats of quant/: a file with a type that has no decoder here
// still opens for inspection.
#pragma once

#include <string_view>

#include "tensor/dtype.h"

namespace vitrine {

struct StorageType {
  DType dtype;
  const char* name;  // lower case: "iq4_xs"
  int block;         // elements per block
  int bytes;         // bytes per block
};

// The numbers 4, 5 and 36 to 38 were withdrawn before any GGUF file carried them.
inline constexpr StorageType kGgmlTypes[] = {
    {DType::kF32, "f32", 1, 4},      {DType::kF16, "f16", 1, 2},
    {DType{2}, "q4_0", 32, 18},      {DType{3}, "q4_1", 32, 20},
    {DType{6}, "q5_0", 32, 22},      {DType{7}, "q5_1", 32, 24},
    {DType{8}, "q8_0", 32, 34},      {DType{9}, "q8_1", 32, 36},
    {DType{10}, "q2_k", 256, 84},    {DType{11}, "q3_k", 256, 110},
    {DType{12}, "q4_k", 256, 144},   {DType{13}, "q5_k", 256, 176},
    {DType{14}, "q6_k", 256, 210},   {DType{15}, "q8_k", 256, 292},
    {DType{16}, "iq2_xxs", 256, 66}, {DType{17}, "iq2_xs", 256, 74},
    {DType{18}, "iq3_xxs", 256, 98}, {DType{19}, "iq1_s", 256, 50},
    {DType{20}, "iq4_nl", 32, 18},   {DType{21}, "iq3_s", 256, 110},
    {DType{22}, "iq2_s", 256, 82},   {DType{23}, "iq4_xs", 256, 136},
    {DType::kI8, "i8", 1, 1},        {DType::kI16, "i16", 1, 2},
    {DType::kI32, "i32", 1, 4},      {DType::kI64, "i64", 1, 8},
    {DType::kF64, "f64", 1, 8},      {DType{29}, "iq1_m", 256, 56},
    {DType::kBF16, "bf16", 1, 2},    {DType{31}, "q4_0_4_4", 32, 18},
    {DType{32}, "q4_0_4_8", 32, 18}, {DType{33}, "q4_0_8_8", 32, 18},
    {DType{34}, "tq1_0", 256, 54},   {DType{35}, "tq2_0", 256, 66},
    {DType{39}, "mxfp4", 32, 17},    {DType{40}, "nvfp4", 64, 36},
    {DType{41}, "q1_0", 128, 18},    {DType{42}, "q2_0", 64, 18},
};

// The type of that name; an error of the compiler where there is none.
constexpr const StorageType& ggml_type(std::string_view name) {
  int i = 0;
  while (name != kGgmlTypes[i].name) ++i;
  return kGgmlTypes[i];
}

}  // namespace vitrine
