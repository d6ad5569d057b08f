// The models that are part of the program: every models/*.gguf, embedded when it is built.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace vitrine {

struct BuiltinModel {
  const char* name;  // the file's stem: "demo"
  std::span<const std::byte> bytes;
};

// By name; empty in a build without them.
std::span<const BuiltinModel> builtin_models();
const BuiltinModel* find_builtin(std::string_view name);  // null when there is none

}  // namespace vitrine
