#include "server/request/json_fields.h"

#include <algorithm>
#include <cmath>

#include "base/utf8.h"

namespace vitrine {
namespace {

// Edits (insert, remove, change) between two names.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

// A whole number, if the value is one that fits.
std::optional<std::int64_t> whole_number(const json::value& value) {
  if (value.is_int64()) return value.get_int64();
  if (value.is_uint64()) {
    std::uint64_t u = value.get_uint64();
    if (u <= INT64_MAX) return static_cast<std::int64_t>(u);
  }
  if (value.is_double()) {
    double d = value.get_double();
    if (d == std::floor(d) && std::fabs(d) < 0x1p63) return static_cast<std::int64_t>(d);
  }
  return std::nullopt;
}

bool is_empty(const json::value& v) {
  return v.is_null() || (v.is_array() && v.get_array().empty()) ||
         (v.is_object() && v.get_object().empty()) || (v.is_string() && v.get_string().empty()) ||
         (v.is_bool() && !v.get_bool());
}

}  // namespace

std::string describe(const json::value& value) {
  switch (value.kind()) {
    case json::kind::string:
      return fmt::format("the string \"{}\"", shortened(std::string_view(value.get_string())));
    case json::kind::array:
      return value.get_array().empty() ? "an empty list" : "a list";
    case json::kind::object:
      return "an object";
    case json::kind::double_:
      return fmt::format("{}", value.get_double());
    default:
      return to_json(value);
  }
}

std::optional<ApiError> parse_body(std::string_view body, json::value& out) {
  auto parsed = parse_json(body, "the body");
  if (!parsed.ok()) return bad_field("", parsed.error().message, "invalid_json");
  if (!parsed->is_object())
    return bad_field("", fmt::format("the body: found {}, allowed an object", describe(*parsed)));
  out = std::move(*parsed);
  return std::nullopt;
}

std::optional<ApiError> read_ids(const json::array& list, const std::string& name, int vocab,
                                 std::vector<std::int32_t>& out) {
  out.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    auto id = whole_number(list[i]);
    if (!id || *id < 0 || *id >= vocab)
      return bad_field(name, fmt::format("{}[{}]: found {}, allowed token ids from 0 to {}", name,
                                         i, describe(list[i]), vocab - 1));
    out.push_back(static_cast<std::int32_t>(*id));
  }
  return std::nullopt;
}

std::string JsonFields::full(std::string_view name) const {
  return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

void JsonFields::fail(ApiError error) {
  if (!error_) error_ = std::move(error);
}

void JsonFields::fail(std::string_view name, std::string message, std::string code) {
  fail(bad_field(full(name), fmt::format("{}: {}", full(name), message), std::move(code)));
}

void JsonFields::found(std::string_view name, const json::value& value, std::string_view allowed) {
  fail(name, fmt::format("found {}, allowed {}", describe(value), allowed));
}

const json::value* JsonFields::any(std::string_view name) {
  known_.emplace_back(name);
  const json::value* value = object_.if_contains(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::optional<std::int64_t> JsonFields::integer(std::string_view name, std::int64_t min,
                                                std::int64_t max) {
  const json::value* value = any(name);
  if (value == nullptr) return std::nullopt;
  auto number = whole_number(*value);
  if (number && *number >= min && *number <= max) return number;
  found(name, *value, fmt::format("whole numbers from {} to {}", min, max));
  return std::nullopt;
}

std::optional<std::int64_t> JsonFields::clamped(std::string_view name, std::int64_t min,
                                                std::int64_t max) {
  const json::value* value = any(name);
  if (value == nullptr) return std::nullopt;
  bool huge = value->is_uint64() ||
              (value->is_double() && std::isfinite(value->get_double()) &&
               value->get_double() == std::floor(value->get_double()) && value->get_double() > 0);
  auto number = whole_number(*value);
  if (!number && huge) return max;
  if (number && *number >= min) return std::min(*number, max);
  found(name, *value, fmt::format("whole numbers from {} up", min));
  return std::nullopt;
}

std::optional<std::uint64_t> JsonFields::bits(std::string_view name) {
  const json::value* value = any(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_uint64()) return value->get_uint64();
  if (auto number = whole_number(*value)) return static_cast<std::uint64_t>(*number);
  found(name, *value, "whole numbers of 64 bits");
  return std::nullopt;
}

std::optional<double> JsonFields::number(std::string_view name) {
  const json::value* value = any(name);
  if (value == nullptr) return std::nullopt;
  double number = value->is_int64()    ? static_cast<double>(value->get_int64())
                  : value->is_uint64() ? static_cast<double>(value->get_uint64())
                  : value->is_double() ? value->get_double()
                                       : NAN;
  if (std::isfinite(number)) return number;
  found(name, *value, "finite numbers");
  return std::nullopt;
}

std::optional<bool> JsonFields::boolean(std::string_view name) {
  const json::value* value = any(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_bool()) return value->get_bool();
  found(name, *value, "true or false");
  return std::nullopt;
}

std::optional<std::string> JsonFields::text(std::string_view name, std::size_t max_bytes) {
  const json::value* value = any(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) {
    found(name, *value, "a string");
    return std::nullopt;
  }
  const json::string& s = value->get_string();
  if (s.size() > max_bytes) {
    fail(name, fmt::format("found a string of {} bytes, allowed up to {}", s.size(), max_bytes));
    return std::nullopt;
  }
  return std::string(s);
}

const json::array* JsonFields::list(std::string_view name, std::size_t max_items) {
  const json::value* value = any(name);
  if (value == nullptr) return nullptr;
  if (!value->is_array()) {
    found(name, *value, "a list");
    return nullptr;
  }
  const json::array& items = value->get_array();
  if (items.size() <= max_items) return &items;
  fail(name, fmt::format("found a list of {}, allowed up to {}", items.size(), max_items));
  return nullptr;
}

const json::object* JsonFields::object(std::string_view name) {
  const json::value* value = any(name);
  if (value == nullptr) return nullptr;
  if (value->is_object()) return &value->get_object();
  found(name, *value, "an object");
  return nullptr;
}

std::optional<std::vector<std::string>> JsonFields::texts(std::string_view name,
                                                          std::size_t max_items) {
  const json::array* items = list(name, max_items);
  if (items == nullptr) return std::nullopt;
  std::vector<std::string> out;
  for (const json::value& item : *items) {
    if (!item.is_string()) {
      found(name, item, "a list of strings");
      return std::nullopt;
    }
    out.emplace_back(item.get_string());
  }
  return out;
}

std::vector<std::int32_t> JsonFields::ids(std::string_view name, std::size_t max_items, int vocab) {
  std::vector<std::int32_t> out;
  if (const json::array* items = list(name, max_items))
    if (auto error = read_ids(*items, full(name), vocab, out)) fail(std::move(*error));
  return out;
}

void JsonFields::ignore(std::initializer_list<std::string_view> names) {
  known_.insert(known_.end(), names.begin(), names.end());
}

void JsonFields::refuse(std::string_view name, std::string_view why) {
  const json::value* value = any(name);
  if (value != nullptr && !is_empty(*value))
    fail(name, fmt::format("found {}; {}", describe(*value), why), "unsupported_parameter");
}

void JsonFields::refuse(std::initializer_list<std::string_view> names) {
  for (std::string_view name : names) refuse(name, "this server does not support it; leave it out");
}

std::optional<ApiError> JsonFields::close() {
  if (error_ || rest_ignored_) return error_;
  for (const auto& field : object_) {
    std::string_view name = field.key();
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    std::string_view close_name;
    std::size_t best = 4;  // further away is no help
    for (const std::string& known : known_) {
      // The distance is at least the difference in length, which also bounds the work.
      std::size_t longer = std::max(name.size(), known.size());
      if (longer - std::min(name.size(), known.size()) >= best) continue;
      std::size_t d = distance(name, known);
      if (d < best && d * 2 < longer) best = d, close_name = known;
    }
    std::string message = "unknown field";
    if (!close_name.empty()) message += fmt::format("; did you mean '{}'?", close_name);
    fail(shortened(name), std::move(message), "unknown_parameter");
    break;
  }
  return error_;
}

}  // namespace vitrine
