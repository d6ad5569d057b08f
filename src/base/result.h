// Result<T>: a value, or an Error about the outside world (a file, a flag, a request).
// Errors travel up to the edge by value; nothing throws across module boundaries.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace vitrine {

enum class ErrorCode {
  kNotFound,     // a file, key or tensor that is not there
  kMalformed,    // bytes that break their format's rules
  kUnsupported,  // well formed, but not something this build can do
  kInvalid,      // an argument outside what is allowed
  kTooLarge,     // over a limit that is named in the message
  kUnavailable,  // the system refused (open, map, allocate)
  kBusy,         // no capacity now; a retry may succeed
};

const char* error_code_name(ErrorCode code);

struct Error {
  ErrorCode code;
  std::string message;  // names the thing, what was found, what is allowed
};

template <typename... Args>
Error make_error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return Error{code, fmt::format(format, std::forward<Args>(args)...)};
}

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & {
    VT_CHECK(ok(), "{}", error().message);
    return std::get<0>(state_);
  }
  const T& value() const& {
    VT_CHECK(ok(), "{}", error().message);
    return std::get<0>(state_);
  }
  T&& value() && {
    VT_CHECK(ok(), "{}", error().message);
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

struct Ok {};
using Status = Result<Ok>;

}  // namespace vitrine

// VT_TRY(auto x, expression): x = value, or return the error to the caller.
#define VT_CONCAT_(a, b) a##b
#define VT_CONCAT(a, b) VT_CONCAT_(a, b)
#define VT_TRY(declaration, expression) \
  VT_TRY_IMPL_(VT_CONCAT(vt_result_, __LINE__), declaration, expression)
#define VT_TRY_IMPL_(tmp, declaration, expression) \
  auto tmp = (expression);                         \
  if (!tmp.ok()) return tmp.error();               \
  declaration = std::move(tmp).value()
// VT_RETURN_IF_ERROR(expression): for a Status; return the error to the caller.
#define VT_RETURN_IF_ERROR(expression)             \
  do {                                             \
    auto vt_status = (expression);                 \
    if (!vt_status.ok()) return vt_status.error(); \
  } while (false)
