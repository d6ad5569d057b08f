#include "base/json.h"

namespace vitrine {

Result<json::value> parse_json(std::string_view text, std::string_view what, int max_depth) {
  json::parse_options options;
  options.max_depth = static_cast<std::size_t>(max_depth);
  json::error_code error;
  json::parser parser({}, options);
  parser.reset();
  std::size_t used = parser.write_some(text, error);
  if (!error && used < text.size() &&
      text.find_first_not_of(" \t\r\n", used) != std::string_view::npos)
    return make_error(ErrorCode::kMalformed, "{}: text after the JSON document at byte {}", what,
                      used);
  if (error)
    return make_error(ErrorCode::kMalformed, "{}: not valid JSON at byte {}: {}", what, used,
                      error.message());
  return parser.release();
}

}  // namespace vitrine
