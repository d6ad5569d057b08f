// Objects that a render owns and values point to; the errors of a render and its budgets.
#pragma once

#include <chrono>
#include <optional>

#include "base/result.h"
#include "jinja/value.h"

namespace vitrine::jinja {

// Thrown inside this module only; Template turns it into an Error with line and column.
struct Failure {
  ErrorCode code;
  std::string message;
};
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

struct Limits {
  std::int64_t steps = 20'000'000;         // nodes evaluated and items looked at
  std::size_t output_bytes = 64u << 20;    // of the rendered text
  std::size_t created_bytes = 256u << 20;  // of all texts made on the way, freed or not
  int depth = 600;                         // of nested evaluation
  std::chrono::milliseconds time{10'000};
};

class Budget {
 public:
  explicit Budget(const Limits& limits);
  void step(std::int64_t n = 1) {
    if ((steps_ -= n) < 0) fail_steps();
    if ((since_clock_ += n) > 4096) check_clock();
  }
  // Call before creating that many bytes, or that many values (times their size).
  void make(std::size_t bytes);
  void enter() {
    if (++depth_ > limits_.depth) fail_depth();
  }
  void leave() { --depth_; }
  const Limits& limits() const { return limits_; }

 private:
  [[noreturn]] void fail_steps() const;
  [[noreturn]] void fail_depth() const;
  void check_clock();

  Limits limits_;
  std::int64_t steps_, since_clock_ = 0;
  std::size_t created_ = 0;
  int depth_ = 0;
  std::chrono::steady_clock::time_point deadline_;
};

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
  // The next positional argument or the one of that name; null: not given.
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
