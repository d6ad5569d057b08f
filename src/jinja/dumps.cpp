#include "jinja/dumps.h"

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "jinja/chars.h"
#include "jinja/operators.h"

namespace vitrine::jinja {
namespace {

constexpr Int kMaxIndent = 64;

void append_unit(std::string& out, unsigned unit) { out += fmt::format("\\u{:04x}", unit); }

void append_char(std::string& out, char32_t c, bool ascii) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    case '\f':
      out += "\\f";
      return;
    case '\b':
      out += "\\b";
      return;
    default:
      break;
  }
  auto code = static_cast<unsigned>(c);
  if (code < 0x20 || (ascii && code >= 0x7F && code <= 0xFFFF && code != 0x7F)) {
    append_unit(out, code);
  } else if (ascii && code > 0xFFFF) {
    append_unit(out, 0xD800 + ((code - 0x10000) >> 10));
    append_unit(out, 0xDC00 + ((code - 0x10000) & 0x3FF));
  } else {
    utf8_append(out, c);
  }
}

class Dumper {
 public:
  explicit Dumper(const DumpOptions& options) : options_(options) {}

  void value(const Value& v, int level) {
    if (const Text* text = v.if_string())
      string(*text);
    else if (const Sequence* s = v.if_sequence();
             s != nullptr &&
             (s->kind == Sequence::Kind::kList || s->kind == Sequence::Kind::kTuple))
      list(s->items, level);
    else if (const Dict* dict = v.if_dict())
      object(*dict, level);
    else
      out_.append(scalar(v));
  }
  Text take() { return std::move(out_); }

 private:
  static std::string scalar(const Value& v) {
    if (v.is_none()) return "null";
    if (v.is_bool()) return v.as_bool() ? "true" : "false";
    if (v.is_int()) return fmt::format("{}", v.as_int());
    if (!v.is_float()) fail("Object of type {} is not JSON serializable", v.type_name());
    double x = v.as_double();
    if (std::isnan(x)) return "NaN";
    if (std::isinf(x)) return x > 0 ? "Infinity" : "-Infinity";
    return float_repr(x);
  }

  void string(const Text& text) {
    charge_read(text.size());
    out_.append("\"");
    bool plain = std::all_of(text.view().begin(), text.view().end(),
                             [](char c) { return c >= 0x20 && c != '"' && c != '\\'; });
    if (plain)
      out_.append(text);
    else
      out_.append(map_chars(
          text, [this](char32_t c, std::string& to) { append_char(to, c, options_.ascii); }));
    out_.append("\"");
  }

  void new_line(int level) {
    if (!options_.indent) return;
    out_.append("\n");
    for (int i = 0; i < level; ++i) out_.append(*options_.indent);
  }

  void list(const std::vector<Value>& items, int level) {
    out_.append("[");
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_.append(options_.item_separator);
      new_line(level + 1);
      value(items[i], level + 1);
    }
    if (!items.empty()) new_line(level);
    out_.append("]");
  }

  void key(const Value& v) {
    if (const Text* text = v.if_string()) return string(*text);
    if (!v.is_none() && !v.is_number())
      fail("keys must be str, int, float, bool or None, not {}", v.type_name());
    out_.append("\"" + scalar(v) + "\"");
  }

  void object(const Dict& dict, int level) {
    charge_bytes(dict.size() * sizeof(void*));
    std::vector<const std::pair<Value, Value>*> items;
    for (const auto& item : dict.items()) items.push_back(&item);
    if (options_.sort_keys) sort(items);
    out_.append("{");
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_.append(options_.item_separator);
      new_line(level + 1);
      key(items[i]->first);
      out_.append(options_.key_separator);
      value(items[i]->second, level + 1);
    }
    if (!items.empty()) new_line(level);
    out_.append("}");
  }

  static void sort(std::vector<const std::pair<Value, Value>*>& items) {
    for (const auto* item : items)
      if (!item->first.is_string()) fail("only string keys can be sorted");
    std::stable_sort(items.begin(), items.end(),
                     [](const auto* a, const auto* b) { return compare(a->first, b->first) < 0; });
  }

  const DumpOptions& options_;
  Text out_;
};

}  // namespace

Text dumps(const Value& value, const DumpOptions& options) {
  Dumper dumper(options);
  dumper.value(value, 0);
  return dumper.take();
}

DumpOptions dump_options(Params& params) {
  DumpOptions out;
  out.ascii = params.boolean("ensure_ascii", false);
  Value indent = params.optional("indent", None{});
  if (const Text* text = indent.if_string()) {
    out.indent = *text;
  } else if (!indent.is_none()) {
    if (!indent.is_int() && !indent.is_bool())
      fail("tojson(): indent must be a number or a string");
    if (indent.as_int() > kMaxIndent)
      fail("tojson(): indent: found {}, allowed up to {}", indent.as_int(), kMaxIndent);
    out.indent =
        Text(std::string(static_cast<std::size_t>(std::max<Int>(0, indent.as_int())), ' '));
  }
  if (out.indent) out.item_separator = ",";
  Value separators = params.optional("separators", None{});
  if (!separators.is_none()) {
    const Sequence* pair = separators.if_sequence();
    if (pair == nullptr || pair->items.size() != 2 || !pair->items[0].is_string() ||
        !pair->items[1].is_string())
      fail("tojson(): separators must be two strings");
    out.item_separator = *pair->items[0].if_string();
    out.key_separator = *pair->items[1].if_string();
  }
  out.sort_keys = params.boolean("sort_keys", false);
  return out;
}

}  // namespace vitrine::jinja
