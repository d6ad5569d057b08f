// str(), repr() and Python's way of writing floats.
#include <charconv>
#include <cmath>

#include "base/utf8.h"
#include "jinja/chars.h"
#include "jinja/object.h"

namespace vitrine::jinja {
namespace {

void append_escaped(std::string& out, char32_t c) {
  if (c <= 0xFF)
    out += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
  else if (c <= 0xFFFF)
    out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
  else
    out += fmt::format("\\U{:08x}", static_cast<unsigned>(c));
}

void append_string(Text& out, const Text& text) {
  std::string_view view = text.view();
  char quote = view.find('\'') != view.npos && view.find('"') == view.npos ? '"' : '\'';
  out.append(std::string_view(&quote, 1));
  out.append(map_chars(text, [quote](char32_t c, std::string& to) {
    if (c == '\\' || c == static_cast<char32_t>(quote))
      (to += '\\') += static_cast<char>(c);
    else if (c == '\n')
      to += "\\n";
    else if (c == '\r')
      to += "\\r";
    else if (c == '\t')
      to += "\\t";
    else if (is_printable(c))
      utf8_append(to, c);
    else
      append_escaped(to, c);
  }));
  out.append(std::string_view(&quote, 1));
}

void append_sequence(Text& out, const Sequence& s) {
  if (s.kind == Sequence::Kind::kRange) return out.append(s.name);
  if (s.kind == Sequence::Kind::kGenerator) return out.append(fmt::format("<{} object>", s.name));
  bool tuple = s.kind == Sequence::Kind::kTuple, view = s.kind == Sequence::Kind::kView;
  if (view) out.append(s.name + "(");
  out.append(tuple ? "(" : "[");
  for (std::size_t i = 0; i < s.items.size(); ++i) {
    if (i > 0) out.append(", ");
    append_repr(out, s.items[i]);
  }
  out.append(!tuple ? "]" : s.items.size() == 1 ? ",)" : ")");
  if (view) out.append(")");
}

void append_dict(Text& out, const Dict& dict) {
  out.append("{");
  bool any = false;
  for (const auto& [key, item] : dict.items()) {
    if (std::exchange(any, true)) out.append(", ");
    append_repr(out, key);
    out.append(": ");
    append_repr(out, item);
  }
  out.append("}");
}

}  // namespace

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[64];
  auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  std::string text(buffer, end);
  std::size_t e = text.find('e');
  int exponent = std::atoi(text.c_str() + e + 1);
  if (exponent < -4 || exponent >= 16) {
    return fmt::format("{}e{}{:02}", text.substr(0, e), exponent < 0 ? '-' : '+',
                       std::abs(exponent));
  }
  end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed).ptr;
  std::string fixed(buffer, end);
  return fixed.find('.') == fixed.npos ? fixed + ".0" : fixed;
}

void append_repr(Text& out, const Value& value) {
  if (const Text* text = value.if_string()) {
    if (text->html()) out.append("Markup(");
    append_string(out, *text);
    if (text->html()) out.append(")");
  } else if (value.is_undefined()) {
    out.append("Undefined");
  } else {
    append_text(out, value);
  }
}

void append_text(Text& out, const Value& value) {
  if (const Text* text = value.if_string())
    out.append(*text);
  else if (value.is_none())
    out.append("None");
  else if (value.is_bool())
    out.append(value.as_bool() ? "True" : "False");
  else if (value.is_int())
    out.append(fmt::format("{}", value.as_int()));
  else if (value.is_float())
    out.append(float_repr(value.as_double()));
  else if (const Sequence* s = value.if_sequence())
    append_sequence(out, *s);
  else if (const Dict* dict = value.if_dict())
    append_dict(out, *dict);
  else if (Object* object = value.if_object())
    out.append(object->show());
}

Text repr(const Value& value) {
  Text out;
  append_repr(out, value);
  return out;
}

Text to_text(const Value& value) {
  if (const Text* text = value.if_string()) return *text;
  Text out;
  append_text(out, value);
  return out;
}

}  // namespace vitrine::jinja
