#include "formats/storage.h"

#include <fmt/format.h>

#include "quant/format.h"

namespace vitrine {
namespace {

// The numbers 4, 5 and 36 to 38 were withdrawn before any GGUF file carried them.
constexpr StorageType kGgmlTypes[] = {
    {DType{0}, "f32", 1, 4},         {DType{1}, "f16", 1, 2},
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
    {DType{24}, "i8", 1, 1},         {DType{25}, "i16", 1, 2},
    {DType{26}, "i32", 1, 4},        {DType{27}, "i64", 1, 8},
    {DType{28}, "f64", 1, 8},        {DType{29}, "iq1_m", 256, 56},
    {DType{30}, "bf16", 1, 2},       {DType{31}, "q4_0_4_4", 32, 18},
    {DType{32}, "q4_0_4_8", 32, 18}, {DType{33}, "q4_0_8_8", 32, 18},
    {DType{34}, "tq1_0", 256, 54},   {DType{35}, "tq2_0", 256, 66},
    {DType{39}, "mxfp4", 32, 17},    {DType{40}, "nvfp4", 64, 36},
    {DType{41}, "q1_0", 128, 18},    {DType{42}, "q2_0", 64, 18},
};

struct SafetensorsType {
  const char* label;
  StorageType type;
};

constexpr SafetensorsType kSafetensorsTypes[] = {
    {"F64", {DType::kF64, "f64", 1, 8}},
    {"F32", {DType::kF32, "f32", 1, 4}},
    {"F16", {DType::kF16, "f16", 1, 2}},
    {"BF16", {DType::kBF16, "bf16", 1, 2}},
    {"I64", {DType::kI64, "i64", 1, 8}},
    {"I32", {DType::kI32, "i32", 1, 4}},
    {"I16", {DType::kI16, "i16", 1, 2}},
    {"I8", {DType::kI8, "i8", 1, 1}},
    {"U64", {DType::kU64, "u64", 1, 8}},
    {"U32", {DType::kU32, "u32", 1, 4}},
    {"U16", {DType::kU16, "u16", 1, 2}},
    {"U8", {DType::kU8, "u8", 1, 1}},
    {"BOOL", {DType::kBool, "bool", 1, 1}},
    {"F8_E4M3", {DType::kF8E4M3, "f8_e4m3", 1, 1}},
    {"F8_E5M2", {DType::kF8E5M2, "f8_e5m2", 1, 1}},
};

}  // namespace

const StorageType* find_ggml_type(std::uint32_t number) {
  for (const StorageType& t : kGgmlTypes)
    if (static_cast<std::uint32_t>(t.dtype) == number) return &t;
  return nullptr;
}

const StorageType* find_safetensors_type(std::string_view name) {
  for (const SafetensorsType& t : kSafetensorsTypes)
    if (name == t.label) return &t.type;
  return nullptr;
}

std::string dtype_name(DType dtype) {
  if (const Format* format = find_format(dtype)) return format->info.name;
  if (const StorageType* type = find_ggml_type(static_cast<std::uint32_t>(dtype)))
    return type->name;
  for (const SafetensorsType& t : kSafetensorsTypes)
    if (t.type.dtype == dtype) return t.type.name;
  return fmt::format("type {}", static_cast<unsigned>(dtype));
}

}  // namespace vitrine
