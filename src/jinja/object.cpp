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

Budget::Budget(const Limits& limits)
    : limits_(limits),
      steps_(limits.steps),
      deadline_(std::chrono::steady_clock::now() + limits.time) {}

void Budget::make(std::size_t bytes) {
  if (bytes > limits_.output_bytes || (created_ += bytes) > limits_.created_bytes)
    throw Failure{
        ErrorCode::kTooLarge,
        fmt::format("the template makes too much text: at most {} bytes at once and {} in "
                    "all are allowed",
                    limits_.output_bytes, limits_.created_bytes)};
}

void Budget::fail_steps() const {
  throw Failure{ErrorCode::kTooLarge,
                fmt::format("the template takes more than {} steps", limits_.steps)};
}

void Budget::fail_depth() const {
  throw Failure{ErrorCode::kTooLarge,
                fmt::format("the template goes more than {} levels deep", limits_.depth)};
}

void Budget::check_clock() {
  since_clock_ = 0;
  if (std::chrono::steady_clock::now() > deadline_)
    throw Failure{ErrorCode::kTooLarge,
                  fmt::format("the template takes more than {} ms", limits_.time.count())};
}

const Value* Params::next(std::string_view name) {
  const Value* found = nullptr;
  if (used_ < args_.positional.size()) found = &args_.positional[used_++];
  for (const auto& [key, value] : args_.named) {
    if (key != name) continue;
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
