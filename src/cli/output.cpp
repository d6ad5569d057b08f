#include "cli/output.h"

#include <cmath>
#include <cstdio>

#include "base/utf8.h"

namespace vitrine {
namespace {

void append_string(std::string& out, std::string_view text) {
  out += '"';
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
  out += '"';
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
      append_string(out, utf8_sanitize(std::string_view(v.get_string())));
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
        append_string(out, utf8_sanitize(std::string_view(key)));
        out += ':';
        append(out, item);
      }
      out += '}';
      break;
    }
  }
}

}  // namespace

std::string to_json(const json::value& value) {
  std::string out;
  append(out, value);
  return out;
}

void print_json(const json::value& value) {
  std::string text = to_json(value) + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

int fail(const Error& error) {
  fmt::print(stderr, "error: {}\n", error.message);
  return 1;
}

std::string with_commas(std::int64_t n) {
  std::string digits = std::to_string(n < 0 ? -n : n), out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return n < 0 ? "-" + out : out;
}

std::string human_bytes(std::int64_t bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 4) value /= 1024, ++unit;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

}  // namespace vitrine
