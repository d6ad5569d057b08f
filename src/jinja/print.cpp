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

Text repr_string(const Text& text) {
  std::string_view view = text.view();
  char quote = view.find('\'') != view.npos && view.find('"') == view.npos ? '"' : '\'';
  Text out(std::string(1, quote));
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
  return out;
}

void append_items(Text& out, const std::vector<Value>& items) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out.append(", ");
    out.append(repr(items[i]));
  }
}

Text repr_sequence(const Sequence& s) {
  switch (s.kind) {
    case Sequence::Kind::kTuple: {
      Text out("(");
      append_items(out, s.items);
      out.append(s.items.size() == 1 ? ",)" : ")");
      return out;
    }
    case Sequence::Kind::kRange:
      return Text(s.name);
    case Sequence::Kind::kGenerator:
      return Text(fmt::format("<{} object>", s.name));
    default: {
      Text out(s.kind == Sequence::Kind::kView ? fmt::format("{}([", s.name) : "[");
      append_items(out, s.items);
      out.append(s.kind == Sequence::Kind::kView ? "])" : "]");
      return out;
    }
  }
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

Text repr(const Value& value) {
  if (const Text* text = value.if_string()) {
    if (!text->html()) return repr_string(*text);
    Text out("Markup(");
    out.append(repr_string(*text));
    out.append(")");
    return out;
  }
  if (value.is_undefined()) return Text("Undefined");
  return to_text(value);
}

Text to_text(const Value& value) {
  if (const Text* text = value.if_string()) return *text;
  if (value.is_undefined()) return {};
  if (value.is_none()) return Text("None");
  if (value.is_bool()) return Text(value.as_bool() ? "True" : "False");
  if (value.is_int()) return Text(fmt::format("{}", value.as_int()));
  if (value.is_float()) return Text(float_repr(value.as_double()));
  if (const Sequence* s = value.if_sequence()) return repr_sequence(*s);
  if (const Dict* dict = value.if_dict()) {
    Text out("{");
    for (const auto& [key, item] : dict->items()) {
      if (out.size() > 1) out.append(", ");
      out.append(repr(key));
      out.append(": ");
      out.append(repr(item));
    }
    out.append("}");
    return out;
  }
  return value.if_object()->show();
}

}  // namespace vitrine::jinja
