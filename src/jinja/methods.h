#pragma once

#include <span>

#include "jinja/interpreter.h"

namespace vitrine::jinja {

struct MethodEntry {
  std::string_view name;
  Method run;
};
std::span<const MethodEntry> string_methods();

}  // namespace vitrine::jinja
