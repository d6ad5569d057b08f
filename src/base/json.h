// JSON is Boost.JSON. One parse function, so that the same limits apply to every document.
#pragma once

#include <boost/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace vitrine {

namespace json = boost::json;

// Parses one document of at most `max_depth` levels. `what` names the source in the error.
Result<json::value> parse_json(std::string_view text, std::string_view what, int max_depth = 64);

// One line, shortest numbers, NaN and infinities as null. Bytes that are not UTF-8 become U+FFFD.
std::string to_json(const json::value& value);
// The text as a JSON string, quotes included, by the same rules.
void append_json(std::string& out, std::string_view text);
// The same without the quotes: a piece, in whole characters, of a longer string.
void append_json_piece(std::string& out, std::string_view text);

}  // namespace vitrine
