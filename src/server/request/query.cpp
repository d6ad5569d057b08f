#include "server/request/query.h"

#include <algorithm>
#include <charconv>

#include "base/json.h"
#include "server/request/json_fields.h"

namespace vitrine {

std::optional<ApiError> read_query(std::string_view query,
                                   std::initializer_list<QueryParameter> parameters) {
  while (!query.empty()) {
    const std::string_view part = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(part.size() + 1, query.size()));
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string_view name = part.substr(0, equals);
    const std::string_view value = part.substr(std::min(equals + 1, part.size()));
    const auto known = std::find_if(parameters.begin(), parameters.end(),
                                    [&](const QueryParameter& p) { return p.name == name; });
    if (known == parameters.end()) {
      std::string names;
      for (const QueryParameter& p : parameters) names += (names.empty() ? "" : ", ") + p.name;
      return ApiError{400, "invalid_request_error",
                      fmt::format("unknown query parameter {}; allowed: {}",
                                  describe(json::value(name)), names),
                      "query", "unknown_parameter"};
    }
    if (!known->take(value))
      return ApiError{400, "invalid_request_error",
                      fmt::format("{}: found {}, must be {}", name, describe(json::value(value)),
                                  known->allowed),
                      std::string(name), "invalid_value"};
  }
  return std::nullopt;
}

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t out = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

QueryParameter whole_number(std::string name, std::uint64_t& value, std::uint64_t least,
                            std::uint64_t most) {
  std::string allowed = most == UINT64_MAX ? fmt::format("a whole number from {} on", least)
                                           : fmt::format("{} to {}", least, most);
  return {std::move(name), std::move(allowed), [&value, least, most](std::string_view text) {
            const auto found = whole_number(text);
            if (!found || *found < least || *found > most) return false;
            value = *found;
            return true;
          }};
}

}  // namespace vitrine
