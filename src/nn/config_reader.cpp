#include "nn/config_reader.h"

namespace vitrine {

ConfigReader::ConfigReader(const ModelFile& file) : file_(file) {}

std::string ConfigReader::resolve(Key key) const {
  if (gguf()) {
    if (key.gguf.empty()) return {};
    return fmt::format("{}.{}", file_.architecture(), key.gguf);
  }
  if (key.hf.empty()) return {};
  std::string nested = fmt::format("text_config.{}", key.hf);
  bool found = file_.meta().has(nested) || file_.meta().is_null(nested);
  return found ? nested : std::string(key.hf);
}

bool ConfigReader::has(Key key) const {
  std::string name = resolve(key);
  return !name.empty() && file_.meta().has(name);
}

bool ConfigReader::has_list(Key key) const {
  const MetaValue* value = file_.meta().find(resolve(key));
  return value != nullptr && std::holds_alternative<MetaArray>(*value);
}

int ConfigReader::integer(Key key, std::int64_t min, std::int64_t max) {
  std::string name = resolve(key);
  auto value = file_.meta().get_int(name);
  if (!value.ok()) {
    fail(value.error());
    return static_cast<int>(min);
  }
  if (*value < min || *value > max) {
    fail(make_error(ErrorCode::kMalformed, "{}: found {}, allowed {} to {}", name, *value, min,
                    max));
    return static_cast<int>(min);
  }
  return static_cast<int>(*value);
}

float ConfigReader::number(Key key, double min, double max) {
  std::string name = resolve(key);
  auto value = file_.meta().get_float(name);
  if (!value.ok()) {
    fail(value.error());
    return static_cast<float>(min);
  }
  if (!(*value >= min && *value <= max)) {
    fail(make_error(ErrorCode::kMalformed, "{}: found {}, allowed {} to {}", name, *value, min,
                    max));
    return static_cast<float>(min);
  }
  return static_cast<float>(*value);
}

int ConfigReader::integer_or(Key key, std::int64_t min, std::int64_t max, std::int64_t missing) {
  return has(key) ? integer(key, min, max) : static_cast<int>(missing);
}

float ConfigReader::number_or(Key key, double min, double max, double missing) {
  return has(key) ? number(key, min, max) : static_cast<float>(missing);
}

int ConfigReader::nullable_integer_or(Key key, std::int64_t min, std::int64_t max,
                                      std::int64_t missing) {
  return file_.meta().is_null(resolve(key)) ? 0 : integer_or(key, min, max, missing);
}

float ConfigReader::nullable_number_or(Key key, double min, double max, double missing) {
  return file_.meta().is_null(resolve(key)) ? 0.0f : number_or(key, min, max, missing);
}

bool ConfigReader::boolean_or(Key key, bool missing) {
  if (!has(key)) return missing;
  auto value = file_.meta().get_bool(resolve(key));
  if (value.ok()) return *value;
  fail(value.error());
  return missing;
}

std::string ConfigReader::string_or(Key key, std::string_view missing) {
  if (!has(key)) return std::string(missing);
  auto value = file_.meta().get_string(resolve(key));
  if (value.ok()) return std::string(*value);
  fail(value.error());
  return std::string(missing);
}

std::vector<std::string> ConfigReader::strings(Key key) {
  if (!has(key)) return {};
  auto value = file_.meta().get_strings(resolve(key));
  if (value.ok()) return {value->begin(), value->end()};
  fail(value.error());
  return {};
}

std::vector<float> ConfigReader::numbers(Key key) {
  if (!has(key)) return {};
  auto value = file_.meta().get_floats(resolve(key));
  if (value.ok()) return *value;
  fail(value.error());
  return {};
}

std::vector<bool> ConfigReader::booleans(Key key) {
  if (!has(key)) return {};
  auto value = file_.meta().get_bools(resolve(key));
  if (value.ok()) return *value;
  fail(value.error());
  return {};
}

void ConfigReader::only(Key key, bool value) {
  if (boolean_or(key, value) != value)
    fail(make_error(ErrorCode::kUnsupported, "{}: found {}, only {} is supported", resolve(key),
                    !value, value));
}

void ConfigReader::none(Key key, std::string_view what) {
  int found = integer_or(key, 0, 1 << 28, 0);
  if (found > 0)
    fail(make_error(ErrorCode::kUnsupported, "{}: found {}; {} not supported for this architecture",
                    resolve(key), found, what));
}

void ConfigReader::fail(Error error) {
  if (!error_) error_ = std::move(error);
}

Status ConfigReader::status() const {
  if (error_) return *error_;
  return Ok{};
}

}  // namespace vitrine
