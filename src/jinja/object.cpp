#include "jinja/object.h"

namespace vitrine::jinja {

void fail_undefined(const Undefined& undefined) {
  throw Failure{ErrorCode::kUnsupported, *undefined.message};
}

const Value& need(const Value& value) {
  if (const Undefined* undefined = value.if_undefined()) fail_undefined(*undefined);
  return value;
}

void check_depth(int depth) {
  if (depth > kMaxNesting)
    throw Failure{ErrorCode::kTooLarge,
                  fmt::format("lists and dicts inside each other: at most {} levels are allowed",
                              kMaxNesting)};
}

const Value* Params::next(std::string_view name) {
  charge(args_.named.size() / 8 + 1);
  const Value* found = nullptr;
  if (used_ < args_.positional.size()) found = &args_.positional[used_++];
  for (const auto& [key, value] : args_.named) {
    if (key != name || name.empty()) continue;
    if (found != nullptr) fail("{}() got multiple values for argument '{}'", function_, name);
    found = &value;
    ++used_named_;
  }
  return found;
}

const Value* Params::named(std::string_view name) {
  for (const auto& [key, value] : args_.named)
    if (key == name) {
      ++used_named_;
      return &value;
    }
  return nullptr;
}

std::vector<std::pair<std::string, Value>> Params::rest_named() {
  used_named_ = args_.named.size();
  for (const auto& [name, value] : args_.named) charge_bytes(sizeof(args_.named[0]) + name.size());
  return args_.named;
}

Value Params::required(std::string_view name) {
  const Value* value = next(name);
  if (value == nullptr) fail("{}() is missing its argument '{}'", function_, name);
  return *value;
}

Value Params::optional(std::string_view name, Value otherwise) {
  const Value* value = next(name);
  return value != nullptr ? *value : otherwise;
}

Int Params::integer(std::string_view name, Int otherwise) {
  const Value* value = next(name);
  if (value == nullptr) return otherwise;
  need(*value);
  if (!value->is_int() && !value->is_bool())
    fail("{}(): {}: found '{}', allowed an integer", function_, name, value->type_name());
  return value->as_int();
}

bool Params::boolean(std::string_view name, bool otherwise) {
  const Value* value = next(name);
  return value != nullptr ? value->truthy() : otherwise;
}

void Params::done() const {
  if (used_ < args_.positional.size())
    fail("{}() takes at most {} arguments, found {}", function_, used_, args_.positional.size());
  if (used_named_ < args_.named.size()) fail("{}() got an unexpected keyword argument", function_);
}

}  // namespace vitrine::jinja
