// The query of a path: name=value, separated by '&', each name one that the endpoint knows.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "server/error.h"

namespace vitrine {

struct QueryParameter {
  std::string name;
  std::string allowed;                               // in words, for the error
  std::function<bool(std::string_view value)> take;  // false: not one of these
};
// What is wrong with the query, if anything. Values are taken as they were sent: nothing here needs escapes.
std::optional<ApiError> read_query(std::string_view query,
                                   std::initializer_list<QueryParameter> parameters);

// "a whole number from LEAST on", or up to MOST.
QueryParameter whole_number(std::string name, std::uint64_t& value, std::uint64_t least = 0,
                            std::uint64_t most = UINT64_MAX);
std::optional<std::uint64_t> whole_number(std::string_view text);

}  // namespace vitrine
