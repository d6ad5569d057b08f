#include "base/json.h"

#include <cmath>

#include "base/utf8.h"

namespace vitrine {
namespace {

void append_escaped(std::string& out, std::string_view text) {
  for (char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20)
          out += fmt::format("\\u{:04x}", static_cast<int>(c));
        else
          out += c;
    }
  }
}

// Logits are floats kept as doubles: nine digits give the float back.
void append_number(std::string& out, double x) {
  if (!std::isfinite(x))
    out += "null";
  else if (static_cast<double>(static_cast<float>(x)) == x)
    out += fmt::format("{}", static_cast<float>(x));
  else
    out += fmt::format("{}", x);
}

void append(std::string& out, const json::value& v) {
  switch (v.kind()) {
    case json::kind::null:
      out += "null";
      break;
    case json::kind::bool_:
      out += v.get_bool() ? "true" : "false";
      break;
    case json::kind::int64:
      out += fmt::format("{}", v.get_int64());
      break;
    case json::kind::uint64:
      out += fmt::format("{}", v.get_uint64());
      break;
    case json::kind::double_:
      append_number(out, v.get_double());
      break;
    case json::kind::string:
      append_json(out, v.get_string());
      break;
    case json::kind::array: {
      out += '[';
      bool first = true;
      for (const json::value& item : v.get_array()) {
        if (!std::exchange(first, false)) out += ',';
        append(out, item);
      }
      out += ']';
      break;
    }
    case json::kind::object: {
      out += '{';
      bool first = true;
      for (const auto& [key, item] : v.get_object()) {
        if (!std::exchange(first, false)) out += ',';
        append_json(out, key);
        out += ':';
        append(out, item);
      }
      out += '}';
      break;
    }
  }
}

}  // namespace

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

void append_json(std::string& out, std::string_view text) {
  out += '"';
  append_json_piece(out, text);
  out += '"';
}

void append_json_piece(std::string& out, std::string_view text) {
  if (utf8_valid(text))
    append_escaped(out, text);
  else
    append_escaped(out, utf8_sanitize(text));
}

std::string to_json(const json::value& value) {
  std::string out;
  append(out, value);
  return out;
}

}  // namespace vitrine
