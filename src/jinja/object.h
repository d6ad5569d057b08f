// Objects that a render owns and values point to; the errors of a render.
#pragma once

#include <optional>

#include "jinja/budget.h"
#include "jinja/value.h"

namespace vitrine::jinja {

// Python would have raised TypeError, ValueError and the like.
template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Failure{ErrorCode::kUnsupported, fmt::format(format, std::forward<Args>(args)...)};
}
[[noreturn]] void fail_undefined(const Undefined& undefined);
// Fails when the value is undefined.
const Value& need(const Value& value);
// Nesting of containers; the limit keeps recursion over them from overflowing the stack.
inline constexpr int kMaxNesting = 100;
void check_depth(int depth);

// Arguments of a call, as they were written.
struct Args {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// The arguments of a built-in function under its parameters' names. Each is asked for once;
// done() refuses the rest.
class Params {
 public:
  Params(std::string_view function, Args args) : function_(function), args_(std::move(args)) {}
  // The next positional argument or the one of that name (none: without a name); null: not given.
  const Value* next(std::string_view name);
  // Only by name.
  const Value* named(std::string_view name);
  // All named arguments; done() then accepts them.
  std::vector<std::pair<std::string, Value>> rest_named();
  Value required(std::string_view name);
  Value optional(std::string_view name, Value otherwise);
  Int integer(std::string_view name, Int otherwise);
  bool boolean(std::string_view name, bool otherwise);
  void done() const;

 private:
  std::string function_;
  Args args_;
  std::size_t used_ = 0, used_named_ = 0;
};

class Interpreter;

class Object {
 public:
  virtual ~Object() = default;
  virtual const char* type_name() const = 0;
  virtual Text show() const { return Text(fmt::format("<{}>", type_name())); }
  // None: no attribute of that name.
  virtual std::optional<Value> attribute(Interpreter&, std::string_view) { return std::nullopt; }
  virtual bool callable() const { return false; }
  virtual Value call(Interpreter&, Args) { fail("'{}' object is not callable", type_name()); }
};

}  // namespace vitrine::jinja
