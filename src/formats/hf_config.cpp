#include "formats/hf_config.h"

#include <algorithm>
#include <optional>

#include "base/json.h"
#include "formats/detail.h"

namespace vitrine {
namespace {

using detail::quote_name;

constexpr std::size_t kMaxConfig = 2 << 20;

std::optional<MetaType> scalar_type(const json::value& value) {
  switch (value.kind()) {
    case json::kind::bool_:
      return MetaType::kBool;
    case json::kind::int64:
      return MetaType::kInt;
    case json::kind::uint64:  // past the range of int64
    case json::kind::double_:
      return MetaType::kFloat;
    case json::kind::string:
      return MetaType::kString;
    default:
      return std::nullopt;
  }
}

// The one type of all elements, integers counting as floats among floats.
std::optional<MetaType> common_type(const json::array& array) {
  std::optional<MetaType> common;
  for (const json::value& item : array) {
    auto type = scalar_type(item);
    if (!type) return std::nullopt;
    if (!common || common == type) {
      common = type;
      continue;
    }
    bool numbers = (*common == MetaType::kInt || *common == MetaType::kFloat) &&
                   (*type == MetaType::kInt || *type == MetaType::kFloat);
    if (!numbers) return std::nullopt;
    common = MetaType::kFloat;
  }
  return common;
}

double to_double(const json::value& value) {
  if (value.is_int64()) return static_cast<double>(value.get_int64());
  if (value.is_uint64()) return static_cast<double>(value.get_uint64());
  return value.get_double();
}

MetaArray to_array(const json::array& array, MetaType type) {
  MetaArray out;
  out.type = type;
  out.count = array.size();
  for (const json::value& item : array) {
    switch (type) {
      case MetaType::kBool:
        out.ints.push_back(item.get_bool() ? 1 : 0);
        break;
      case MetaType::kString:
        out.strings.emplace_back(item.get_string().data(), item.get_string().size());
        break;
      case MetaType::kFloat:
        out.floats.push_back(to_double(item));
        break;
      default:
        out.ints.push_back(item.get_int64());
    }
  }
  return out;
}

class Flattener {
 public:
  Flattener(const std::string& name, std::deque<std::string>& texts) : name_(name), texts_(texts) {}

  // Recursion is bounded by the depth that parse_json allows.
  Status flatten(std::string& key, const json::value& value) {
    if (key.size() > detail::kMaxKeyBytes)
      return make_error(ErrorCode::kTooLarge, "{}: key {} has {} bytes, at most {}", name_,
                        quote_name(key), key.size(), detail::kMaxKeyBytes);
    switch (value.kind()) {
      case json::kind::null:
        return add_null(key);
      case json::kind::bool_:
        return add(key, value.get_bool());
      case json::kind::int64:
        return add(key, std::int64_t{value.get_int64()});
      case json::kind::uint64:
        return add(key, std::uint64_t{value.get_uint64()});
      case json::kind::double_:
        return add(key, value.get_double());
      case json::kind::string: {
        const json::string& text = value.get_string();
        texts_.emplace_back(text.data(), text.size());
        return add(key, std::string_view(texts_.back()));
      }
      case json::kind::array:
        return flatten_array(key, value.get_array());
      case json::kind::object:
        break;
    }
    for (const auto& [name, item] : value.get_object())
      VT_RETURN_IF_ERROR(flatten_child(key, {name.data(), name.size()}, item));
    return Ok{};
  }

  Meta take() { return std::move(meta_); }

 private:
  Status flatten_child(std::string& key, std::string_view child, const json::value& item) {
    std::size_t length = key.size();
    if (!key.empty()) key += '.';
    key += child;
    Status status = flatten(key, item);
    key.resize(length);
    return status;
  }

  Status flatten_array(std::string& key, const json::array& array) {
    if (array.empty()) return add(key, MetaArray{});
    if (auto type = common_type(array)) return add(key, to_array(array, *type));
    for (std::size_t i = 0; i < array.size(); ++i)
      VT_RETURN_IF_ERROR(flatten_child(key, std::to_string(i), array[i]));
    return Ok{};
  }

  Status check_count(const std::string& key) {
    if (++count_ <= detail::kMaxKeys) return Ok{};
    return make_error(ErrorCode::kTooLarge, "{}: over {} values, at {}", name_, detail::kMaxKeys,
                      quote_name(key));
  }

  Status add_null(const std::string& key) {
    VT_RETURN_IF_ERROR(check_count(key));
    meta_.add_null(key);
    return Ok{};
  }

  Status add(const std::string& key, MetaValue value) {
    VT_RETURN_IF_ERROR(check_count(key));
    if (!meta_.add(key, std::move(value)))
      return make_error(ErrorCode::kMalformed, "{}: key {} appears twice", name_, quote_name(key));
    return Ok{};
  }

  const std::string& name_;
  std::deque<std::string>& texts_;
  Meta meta_;
  std::size_t count_ = 0;  // values, nulls among them
};

}  // namespace

Result<Meta> parse_hf_config(std::string_view text, const std::string& name,
                             std::deque<std::string>& texts) {
  if (text.size() > kMaxConfig)
    return make_error(ErrorCode::kTooLarge, "{}: {} bytes, at most {}", name, text.size(),
                      kMaxConfig);
  VT_TRY(json::value document, parse_json(text, name));
  if (!document.is_object())
    return make_error(ErrorCode::kMalformed, "{}: not a JSON object", name);
  Flattener flattener(name, texts);
  std::string key;
  VT_RETURN_IF_ERROR(flattener.flatten(key, document));
  return flattener.take();
}

}  // namespace vitrine
