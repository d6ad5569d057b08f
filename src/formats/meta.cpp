#include "formats/meta.h"

#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "formats/detail.h"

namespace vitrine {
namespace {

using detail::quote_name;

std::string describe(const MetaValue& value) {
  struct Visitor {
    std::string operator()(bool v) const { return v ? "bool true" : "bool false"; }
    std::string operator()(std::int64_t v) const { return fmt::format("integer {}", v); }
    std::string operator()(std::uint64_t v) const { return fmt::format("integer {}", v); }
    std::string operator()(double v) const { return fmt::format("float {}", v); }
    std::string operator()(std::string_view v) const { return "string " + quote_name(v); }
    std::string operator()(const MetaArray& v) const {
      return fmt::format("array of {} {}", v.count, meta_type_name(v.type));
    }
  };
  return std::visit(Visitor{}, value);
}

Error missing_key(std::string_view key) {
  return make_error(ErrorCode::kNotFound, "metadata key {} is missing", quote_name(key));
}

Error wrong_type(std::string_view key, const MetaValue& found, std::string_view wanted) {
  return make_error(ErrorCode::kMalformed, "metadata key {} is {}, wanted {}", quote_name(key),
                    describe(found), wanted);
}

template <typename T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

// Integers of 1, 2, 4 or 8 bytes; a u64 above the range of i64 comes out negative.
std::int64_t load_integer(const std::byte* at, int width, bool is_signed) {
  switch (width) {
    case 1:
      return is_signed ? load<std::int8_t>(at) : std::int64_t{load<std::uint8_t>(at)};
    case 2:
      return is_signed ? load<std::int16_t>(at) : std::int64_t{load<std::uint16_t>(at)};
    case 4:
      return is_signed ? load<std::int32_t>(at) : std::int64_t{load<std::uint32_t>(at)};
    default:
      return load<std::int64_t>(at);
  }
}

bool untyped(const MetaArray& array) { return array.count == 0 && array.data == nullptr; }

const MetaArray* array_of(const MetaValue& value, std::initializer_list<MetaType> types) {
  const auto* array = std::get_if<MetaArray>(&value);
  if (array == nullptr) return nullptr;
  if (untyped(*array)) return array;
  for (MetaType type : types)
    if (array->type == type) return array;
  return nullptr;
}

template <typename T>
Result<T> or_missing(Result<T> found, T missing) {
  if (!found.ok() && found.error().code == ErrorCode::kNotFound) return missing;
  return found;
}

}  // namespace

const char* meta_type_name(MetaType type) {
  switch (type) {
    case MetaType::kBool:
      return "bool";
    case MetaType::kInt:
      return "int";
    case MetaType::kUint:
      return "uint";
    case MetaType::kFloat:
      return "float";
    case MetaType::kString:
      return "string";
  }
  return "unknown";
}

const MetaValue* Meta::find(std::string_view key) const {
  auto it = values_.find(key);
  return it == values_.end() ? nullptr : &it->second;
}

bool Meta::add(std::string key, MetaValue value) {
  return values_.emplace(std::move(key), std::move(value)).second;
}

Result<std::int64_t> Meta::get_int(std::string_view key) const {
  const MetaValue* value = find(key);
  if (value == nullptr) return missing_key(key);
  if (const auto* v = std::get_if<std::int64_t>(value)) return *v;
  if (const auto* v = std::get_if<std::uint64_t>(value))
    if (std::in_range<std::int64_t>(*v)) return static_cast<std::int64_t>(*v);
  return wrong_type(key, *value, "an integer below 2^63");
}

Result<double> Meta::get_float(std::string_view key) const {
  const MetaValue* value = find(key);
  if (value == nullptr) return missing_key(key);
  if (const auto* v = std::get_if<double>(value)) return *v;
  if (const auto* v = std::get_if<std::int64_t>(value)) return static_cast<double>(*v);
  if (const auto* v = std::get_if<std::uint64_t>(value)) return static_cast<double>(*v);
  return wrong_type(key, *value, "a number");
}

Result<bool> Meta::get_bool(std::string_view key) const {
  const MetaValue* value = find(key);
  if (value == nullptr) return missing_key(key);
  if (const auto* v = std::get_if<bool>(value)) return *v;
  return wrong_type(key, *value, "a bool");
}

Result<std::string_view> Meta::get_string(std::string_view key) const {
  const MetaValue* value = find(key);
  if (value == nullptr) return missing_key(key);
  if (const auto* v = std::get_if<std::string_view>(value)) return *v;
  return wrong_type(key, *value, "a string");
}

Result<std::vector<std::int64_t>> Meta::get_ints(std::string_view key) const {
  const MetaValue* value = find(key);
  if (value == nullptr) return missing_key(key);
  const MetaArray* array = array_of(*value, {MetaType::kInt, MetaType::kUint});
  if (array == nullptr) return wrong_type(key, *value, "an array of integers");
  if (array->data == nullptr) return array->ints;
  std::vector<std::int64_t> out(array->count);
  bool is_signed = array->type == MetaType::kInt;
  for (std::size_t i = 0; i < array->count; ++i) {
    out[i] = load_integer(array->data + i * array->width, array->width, is_signed);
    if (!is_signed && out[i] < 0)
      return make_error(ErrorCode::kMalformed,
                        "metadata key {}: element {} is {}, wanted an integer below 2^63",
                        quote_name(key), i, static_cast<std::uint64_t>(out[i]));
  }
  return out;
}

Result<std::vector<float>> Meta::get_floats(std::string_view key) const {
  const MetaValue* value = find(key);
  if (value == nullptr) return missing_key(key);
  const MetaArray* array = array_of(*value, {MetaType::kFloat, MetaType::kInt});
  if (array == nullptr || (array->data != nullptr && array->type != MetaType::kFloat))
    return wrong_type(key, *value, "an array of floats");
  if (array->data == nullptr) {
    std::vector<float> out(array->floats.begin(), array->floats.end());
    out.insert(out.end(), array->ints.begin(), array->ints.end());
    return out;
  }
  std::vector<float> out(array->count);
  for (std::size_t i = 0; i < array->count; ++i)
    out[i] = array->width == 4 ? load<float>(array->data + 4 * i)
                               : static_cast<float>(load<double>(array->data + 8 * i));
  return out;
}

Result<std::vector<bool>> Meta::get_bools(std::string_view key) const {
  const MetaValue* value = find(key);
  if (value == nullptr) return missing_key(key);
  const MetaArray* array = array_of(*value, {MetaType::kBool});
  if (array == nullptr) return wrong_type(key, *value, "an array of bools");
  std::vector<bool> out(array->count);
  for (std::size_t i = 0; i < array->count; ++i)
    out[i] = array->data != nullptr ? array->data[i] != std::byte{0} : array->ints[i] != 0;
  return out;
}

Result<std::vector<std::string_view>> Meta::get_strings(std::string_view key) const {
  const MetaValue* value = find(key);
  if (value == nullptr) return missing_key(key);
  const MetaArray* array = array_of(*value, {MetaType::kString});
  if (array == nullptr) return wrong_type(key, *value, "an array of strings");
  if (array->data == nullptr)
    return std::vector<std::string_view>(array->strings.begin(), array->strings.end());
  std::vector<std::string_view> out(array->count);
  detail::ByteReader reader({array->data, array->bytes});
  for (std::string_view& text : out)
    if (!reader.read_string(text))
      return make_error(ErrorCode::kMalformed,
                        "metadata key {}: string {} of {} passes the end of the array: the file "
                        "was changed while it was read",
                        quote_name(key), &text - out.data(), array->count);
  return out;
}

Result<std::int64_t> Meta::get_int(std::string_view key, std::int64_t missing) const {
  return or_missing(get_int(key), missing);
}

Result<double> Meta::get_float(std::string_view key, double missing) const {
  return or_missing(get_float(key), missing);
}

Result<bool> Meta::get_bool(std::string_view key, bool missing) const {
  return or_missing(get_bool(key), missing);
}

Result<std::string_view> Meta::get_string(std::string_view key, std::string_view missing) const {
  return or_missing(get_string(key), missing);
}

}  // namespace vitrine
