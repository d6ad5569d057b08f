// Typed reading of a JSON object from a client. Every error names the field, what came and what is
// allowed. The first error sticks; values read after it must not be used. Asking for a
// field makes its name known; close() refuses unknown names.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "server/error.h"

namespace vitrine {

// A short description for messages: "the string \"abc\"", "-1", "a list".
std::string describe(const json::value& value);
// The whole body as an object.
std::optional<ApiError> parse_body(std::string_view body, json::value& out);

class JsonFields {
 public:
  // `path`: where the object is in the body ("messages[0]"); empty: it is the body. The object
  // must outlive the reader.
  explicit JsonFields(const json::object& object, std::string path = {})
      : object_(object), path_(std::move(path)) {}

  // None when the field is absent or null. Whole numbers may be written as 5.0.
  std::optional<std::int64_t> integer(std::string_view name, std::int64_t min, std::int64_t max);
  // The same, and a larger one counts as `max`.
  std::optional<std::int64_t> clamped(std::string_view name, std::int64_t min, std::int64_t max);
  // 64 bits, signed or not.
  std::optional<std::uint64_t> bits(std::string_view name);
  std::optional<double> number(std::string_view name);  // finite
  std::optional<bool> boolean(std::string_view name);
  std::optional<std::string> text(std::string_view name, std::size_t max_bytes = kAnyBytes);
  const json::array* list(std::string_view name, std::size_t max_items);
  const json::object* object(std::string_view name);
  const json::value* any(std::string_view name);
  std::optional<std::vector<std::string>> texts(std::string_view name, std::size_t max_items);
  // Token ids of a vocabulary of that size.
  std::vector<std::int32_t> ids(std::string_view name, std::size_t max_items, int vocab);

  // Known fields that have no effect here; any value is accepted.
  void ignore(std::initializer_list<std::string_view> names);
  // The same for all other names.
  void ignore_rest() { rest_ignored_ = true; }
  // Known fields that are not supported: an error unless absent, null, false or empty.
  void refuse(std::initializer_list<std::string_view> names);
  void refuse(std::string_view name, std::string_view why);

  void fail(std::string_view name, std::string message, std::string code = {});
  void fail(ApiError error);
  // "path.name"
  std::string full(std::string_view name) const;
  // The error so far, or that of an unknown name.
  std::optional<ApiError> close();
  const std::optional<ApiError>& error() const { return error_; }

  static constexpr std::size_t kAnyBytes = static_cast<std::size_t>(-1);

 private:
  void found(std::string_view name, const json::value& value, std::string_view allowed);

  const json::object& object_;
  std::string path_;
  std::vector<std::string> known_;  // as many as the caller asks for, whatever came
  bool rest_ignored_ = false;
  std::optional<ApiError> error_;
};

// List items as token ids; an error names the item.
std::optional<ApiError> read_ids(const json::array& list, const std::string& name, int vocab,
                                 std::vector<std::int32_t>& out);

}  // namespace vitrine
