#include "formats/storage.h"

#include <fmt/format.h>

#include "quant/format.h"

namespace vitrine {
namespace {

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
