// Python's two ways of formatting: '%5.1f of %s' % (x, y) and '{:>5} of {name}'.format(x, name=y).
#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "jinja/chars.h"
#include "jinja/interpreter.h"
#include "jinja/operators.h"
#include "jinja/string_ops.h"

namespace vitrine::jinja {
namespace {

constexpr int kMaxWidth = 10'000, kMaxPrecision = 300;

struct Spec {
  char fill = ' ', align = 0, sign = '-', type = 0;
  bool alternate = false, grouped = false;
  int width = 0, precision = -1;
};

// Reads a number at `at`; the limits keep a template from asking for gigabytes.
int read_number(std::string_view text, std::size_t& at, int most) {
  int out = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    out = out * 10 + (text[at] - '0');
    if (out > most) fail("a width or precision over {} in a format", most);
  }
  return out;
}

std::string grouped(std::string digits) {
  std::size_t end = digits.find_first_not_of("0123456789");
  if (end == digits.npos) end = digits.size();
  for (std::size_t at = end; at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

// Without its sign.
std::string digits_of(const Value& value, const Spec& spec) {
  char type = spec.type;
  bool integer = value.is_int() || value.is_bool();
  if (integer && (type == 0 || type == 'd' || type == 'i' || type == 'u' || type == 'n'))
    return fmt::format("{}", value.as_int() < 0 ? -value.as_int() : value.as_int());
  if (integer && std::string_view("xXob").find(type) != std::string_view::npos) {
    auto n = static_cast<unsigned __int128>(value.as_int() < 0 ? -value.as_int() : value.as_int());
    std::string prefix = spec.alternate ? std::string("0") + type : "";
    switch (type) {
      case 'x':
        return prefix + fmt::format("{:x}", n);
      case 'X':
        return prefix + fmt::format("{:X}", n);
      case 'o':
        return prefix + fmt::format("{:o}", n);
      default:
        return prefix + fmt::format("{:b}", n);
    }
  }
  double x = std::abs(value.as_double());
  int precision = spec.precision < 0 ? 6 : spec.precision;
  switch (type) {
    case 'f':
    case 'F':
      return fmt::format("{:.{}f}", x, precision);
    case 'e':
      return fmt::format("{:.{}e}", x, precision);
    case 'E':
      return fmt::format("{:.{}E}", x, precision);
    case 'g':
      return fmt::format("{:.{}g}", x, std::max(precision, 1));
    case 'G':
      return fmt::format("{:.{}G}", x, std::max(precision, 1));
    case '%':
      return fmt::format("{:.{}f}%", x * 100, precision);
    case 0:
      return spec.precision < 0 ? float_repr(x) : fmt::format("{:.{}g}", x, std::max(precision, 1));
    case 'd':
    case 'i':
    case 'u':
      if (std::abs(x) < 1e36) return fmt::format("{}", static_cast<Int>(x));
      [[fallthrough]];
    default:
      fail("unknown format code '{}' for '{}'", type, value.type_name());
  }
}

Text padded(const Text& text, const Spec& spec, char align) {
  return pad(text, spec.width, spec.fill, align != '<', align != '>');
}

Text format_number(const Value& value, const Spec& spec) {
  std::string digits = digits_of(value, spec);
  if (spec.grouped) digits = grouped(std::move(digits));
  bool negative = value.is_float() ? std::signbit(value.as_double()) : value.as_int() < 0;
  std::string sign = negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  char align = spec.align == 0 ? '>' : spec.align;
  if (align != '=') return padded(Text(sign + digits), spec, align);
  Spec rest = spec;
  rest.width = std::max(0, spec.width - static_cast<int>(sign.size()));
  Text out(sign);
  out.append(padded(Text(digits), rest, '>'));
  return out;
}

Text cut(const Text& text, int precision) {
  CharIndex index(text.view());
  if (precision < 0 || index.count() <= static_cast<std::size_t>(precision)) return text;
  return text.substr(0, index.at(static_cast<std::size_t>(precision)));
}

Spec read_spec(std::string_view text) {
  Spec spec;
  std::size_t at = 0;
  auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  if (text.size() > 1 && is_align(text[1])) {
    spec.fill = text[0];
    spec.align = text[1];
    at = 2;
  } else if (!text.empty() && is_align(text[0])) {
    spec.align = text[0];
    at = 1;
  }
  if (at < text.size() && (text[at] == '+' || text[at] == ' ' || text[at] == '-'))
    spec.sign = text[at++];
  if (at < text.size() && text[at] == '#') spec.alternate = ++at > 0;
  if (at < text.size() && text[at] == '0' && spec.align == 0) {
    spec.fill = '0';
    spec.align = '=';
  }
  spec.width = read_number(text, at, kMaxWidth);
  if (at < text.size() && (text[at] == ',' || text[at] == '_')) spec.grouped = ++at > 0;
  if (at < text.size() && text[at] == '.') spec.precision = read_number(text, ++at, kMaxPrecision);
  if (at < text.size()) spec.type = text[at++];
  if (at != text.size()) fail("invalid format specifier '{}'", text);
  return spec;
}

// The arguments of one % formatting, taken in order or by name.
class PercentArguments {
 public:
  explicit PercentArguments(const Value& value) : value_(value) {
    const Sequence* s = value.if_sequence();
    if (s != nullptr && s->kind == Sequence::Kind::kTuple) tuple_ = s;
  }
  Value next() {
    if (tuple_ == nullptr ? used_ > 0 : used_ >= tuple_->items.size())
      fail("not enough arguments for format string");
    ++used_;
    return tuple_ != nullptr ? tuple_->items[used_ - 1] : value_;
  }
  Value named(std::string_view name) {
    const Dict* dict = value_.if_dict();
    if (dict == nullptr) fail("format requires a mapping");
    const Value* found = dict->find(name);
    if (found == nullptr) fail("key '{}' is not in the mapping", name);
    used_ = 1;
    return *found;
  }
  void done() const {
    bool all = tuple_ != nullptr ? used_ == tuple_->items.size()
                                 : used_ > 0 || value_.if_dict() != nullptr;
    if (!all) fail("not all arguments converted during string formatting");
  }

 private:
  const Value& value_;
  const Sequence* tuple_ = nullptr;
  std::size_t used_ = 0;
};

// One conversion; `at` is after the percent sign.
Text percent_conversion(std::string_view f, std::size_t& at, PercentArguments& arguments) {
  std::optional<std::string_view> name;
  if (at < f.size() && f[at] == '(') {
    std::size_t end = f.find(')', at);
    if (end == f.npos) fail("incomplete format key");
    name = f.substr(at + 1, end - at - 1);
    at = end + 1;
  }
  Spec spec;
  for (; at < f.size() && std::string_view("-+ #0").find(f[at]) != std::string_view::npos; ++at) {
    if (f[at] == '-')
      spec.align = '<';
    else if (f[at] == '0' && spec.align == 0)
      spec.fill = '0', spec.align = '=';
    else if (f[at] == '#')
      spec.alternate = true;
    else if (f[at] != '0')
      spec.sign = f[at];
  }
  if (spec.align == '<') spec.fill = ' ';
  spec.width = read_number(f, at, kMaxWidth);
  if (at < f.size() && f[at] == '.') spec.precision = read_number(f, ++at, kMaxPrecision);
  if (at >= f.size()) fail("incomplete format");
  spec.type = f[at++];
  if (spec.type == '%') return Text("%");
  Value value = name ? arguments.named(*name) : arguments.next();
  if (spec.type == 's' || spec.type == 'r' || spec.type == 'a') {
    Text text = cut(spec.type == 's' ? to_text(value) : repr(value), spec.precision);
    spec.fill = ' ';
    return padded(text, spec, spec.align == '<' ? '<' : '>');
  }
  need(value);
  if (!value.is_number())
    fail("%{} format: a number is required, not {}", spec.type, value.type_name());
  return format_number(value, spec);
}

// A field of str.format: where it is in the arguments.
Value braces_field(Interpreter& run, std::string_view field, const Args& args, std::size_t& next) {
  std::size_t end = std::min(field.find_first_of(".["), field.size());
  std::string_view name = field.substr(0, end);
  bool number = name.find_first_not_of("0123456789") == name.npos;
  Value out;
  if (number) {
    std::size_t at = 0;
    std::size_t i = name.empty() ? next++ : static_cast<std::size_t>(read_number(name, at, 10'000));
    if (i >= args.positional.size())
      fail("replacement index {} out of range for positional args", i);
    out = args.positional[i];
  } else {
    charge(args.named.size() / 8 + 1);
    auto found = std::find_if(args.named.begin(), args.named.end(),
                              [&](const auto& a) { return a.first == name; });
    if (found == args.named.end()) fail("no argument '{}' for the format", name);
    out = found->second;
  }
  for (std::string_view rest = field.substr(end); !rest.empty();) {
    bool attribute = rest[0] == '.';
    std::size_t stop =
        attribute ? std::min(rest.find_first_of(".[", 1), rest.size()) : rest.find(']');
    if (stop == rest.npos) fail("missing ']' in a format");
    std::string key(rest.substr(1, stop - 1));
    bool index = !key.empty() && key.size() < 10 && key.find_first_not_of("0123456789") == key.npos;
    out = attribute ? run.get_attribute(out, key)
          : index   ? run.get_item(out, std::stoi(key))
                    : run.get_item(out, Text(key));
    rest.remove_prefix(attribute ? stop : stop + 1);
  }
  return out;
}

}  // namespace

Text format_value(const Value& value, std::string_view text) {
  if (text.empty()) return to_text(value);
  need(value);
  Spec spec = read_spec(text);
  bool number = value.is_int() || value.is_float() || (value.is_bool() && spec.type != 0);
  if (number) return format_number(value, spec);
  if (!value.is_string() && !value.is_bool())
    fail("unsupported format string passed to {}", value.type_name());
  if ((spec.type != 0 && spec.type != 's') || spec.align == '=')
    fail("unknown format code '{}' for '{}'", spec.type, value.type_name());
  return padded(cut(to_text(value), spec.precision), spec, spec.align == 0 ? '<' : spec.align);
}

Text format_percent(const Text& format, const Value& values) {
  Text out;
  PercentArguments arguments(values);
  std::string_view f = format.view();
  charge(f.size() / 64);
  for (std::size_t at = 0; at < f.size();) {
    std::size_t percent = std::min(f.find('%', at), f.size());
    out.append(format, at, percent);
    at = percent + 1;
    if (percent == f.size()) break;
    Text text = percent_conversion(f, at, arguments);
    out.append(format.html() ? escape_html(text) : text);
  }
  arguments.done();
  out.set_html(format.html());
  return out;
}

Text format_braces(Interpreter& run, const Text& format, const Args& args) {
  Text out;
  std::string_view f = format.view();
  charge(f.size() / 64);
  std::size_t next = 0;
  for (std::size_t at = 0; at < f.size();) {
    std::size_t brace = std::min(f.find_first_of("{}", at), f.size());
    out.append(format, at, brace);
    if (brace == f.size()) break;
    at = brace + 1;
    if (at < f.size() && f[at] == f[brace]) {
      out.append(format, brace, at);
      ++at;
      continue;
    }
    std::size_t end = f[brace] == '{' ? f.find('}', at) : f.npos;
    if (end == f.npos) fail("single '{}' encountered in format string", f[brace]);
    std::string_view field = f.substr(at, end - at);
    if (field.find('{') != field.npos) fail("fields inside fields of a format are not supported");
    at = end + 1;
    std::size_t colon = std::min(field.find(':'), field.size());
    std::string_view spec = colon < field.size() ? field.substr(colon + 1) : "";
    std::string_view name = field.substr(0, colon);
    std::size_t mark = std::min(name.find('!'), name.size());
    Value value = braces_field(run, name.substr(0, mark), args, next);
    if (mark < name.size()) value = name.substr(mark) == "!s" ? to_text(value) : repr(value);
    Text text = format_value(value, spec);
    out.append(text);
  }
  return out;
}

}  // namespace vitrine::jinja
