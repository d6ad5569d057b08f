#include "tokenizer/load_json.h"

namespace vitrine {
namespace {

const json::value* field(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_null() ? nullptr : value;
}

Error wrong_type(std::string_view where, std::string_view key, const json::value* value,
                 std::string_view wanted) {
  std::string found = "nothing";
  if (value != nullptr) {
    json::string_view kind = json::to_string(value->kind());
    found.assign(kind.data(), kind.size());
  }
  return make_error(ErrorCode::kMalformed, "tokenizer.json: {}.{} is {}; it must be {}", where, key,
                    found, wanted);
}

}  // namespace

Result<std::string> json_string(const json::object& object, std::string_view key,
                                std::string_view where) {
  const json::value* value = field(object, key);
  if (value == nullptr || !value->is_string()) return wrong_type(where, key, value, "a string");
  return std::string(value->get_string().data(), value->get_string().size());
}

Result<std::string> json_string(const json::object& object, std::string_view key,
                                std::string_view where, std::string_view missing) {
  if (field(object, key) == nullptr) return std::string(missing);
  return json_string(object, key, where);
}

Result<bool> json_bool(const json::object& object, std::string_view key, std::string_view where,
                       bool missing) {
  const json::value* value = field(object, key);
  if (value == nullptr) return missing;
  if (!value->is_bool()) return wrong_type(where, key, value, "true or false");
  return value->get_bool();
}

Result<std::int64_t> json_int(const json::object& object, std::string_view key,
                              std::string_view where, std::int64_t missing) {
  const json::value* value = field(object, key);
  if (value == nullptr) return missing;
  if (!value->is_int64()) return wrong_type(where, key, value, "an integer");
  return value->get_int64();
}

Result<const json::object*> json_object(const json::object& object, std::string_view key,
                                        std::string_view where) {
  const json::value* value = field(object, key);
  const json::object* none = nullptr;
  if (value == nullptr) return none;
  if (!value->is_object()) return wrong_type(where, key, value, "an object");
  return &value->get_object();
}

Result<const json::array*> json_array(const json::object& object, std::string_view key,
                                      std::string_view where) {
  const json::value* value = field(object, key);
  const json::array* none = nullptr;
  if (value == nullptr) return none;
  if (!value->is_array()) return wrong_type(where, key, value, "an array");
  return &value->get_array();
}

Result<JsonPattern> json_pattern(const json::object& object, std::string_view where) {
  VT_TRY(const json::object* pattern, json_object(object, "pattern", where));
  if (pattern != nullptr) {
    for (bool regex : {false, true}) {
      const char* key = regex ? "Regex" : "String";
      if (!pattern->contains(key)) continue;
      VT_TRY(std::string text, json_string(*pattern, key, where));
      return JsonPattern{std::move(text), regex};
    }
  }
  return make_error(ErrorCode::kMalformed,
                    "tokenizer.json: {}.pattern must hold \"String\" or \"Regex\"", where);
}

}  // namespace vitrine
