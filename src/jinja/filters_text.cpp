#include <algorithm>

#include "base/utf8.h"
#include "jinja/chars.h"
#include "jinja/filters.h"
#include "jinja/operators.h"
#include "jinja/string_ops.h"

namespace vitrine::jinja {
namespace {

Value trim(Interpreter&, const Value& value, Params& params) {
  Value chars = params.optional("chars", None{});
  params.done();
  if (!chars.is_none() && !chars.is_string()) fail("trim(): chars must be a string");
  Text text = to_text(value);
  return strip(text, true, true, chars.if_string());
}

template <Text (*kFunction)(const Text&)>
Value simple(Interpreter&, const Value& value, Params& params) {
  params.done();
  Text text = to_text(value);
  return kFunction(text);
}

Text identity(const Text& text) { return text; }

// Words begin after white space and opening brackets.
Text title_words(const Text& text) {
  bool begins = true;
  return map_chars(text, [&](char32_t c, std::string& out) {
    bool between = c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || is_space(c);
    if (begins && !between)
      append_upper(out, c);
    else
      append_lower(out, c);
    begins = between;
  });
}

Text safe(const Text& text) {
  Text out = text;
  out.set_html(true);
  return out;
}

Text force_escape(const Text& text) {
  Text plain = text;
  plain.set_html(false);
  return escape_html(plain);
}

Value replace_(Interpreter&, const Value& value, Params& params) {
  Value from = params.required("old"), to = params.required("new");
  Value count = params.optional("count", None{});
  params.done();
  if (!count.is_none() && !count.is_int()) fail("replace(): count must be an integer");
  return replace(to_text(value), to_text(from), to_text(to), count.is_none() ? -1 : count.as_int());
}

Value indent(Interpreter&, const Value& value, Params& params) {
  Value width = params.optional("width", 4);
  bool first = params.boolean("first", false), blank = params.boolean("blank", false);
  params.done();
  need(value), need(width);
  if (!value.is_string()) fail("indent(): found '{}', allowed a string", value.type_name());
  Text space;
  if (const Text* text = width.if_string())
    space = *text;
  else if (width.is_int() || width.is_bool())
    space = *binary("*", " ", width).if_string();
  else
    fail("indent(): width must be an integer or a string");
  Text whole = *value.if_string();
  whole.append("\n");
  Text out;
  bool begun = false;
  for (const Value& value : split_lines(whole, false)) {
    const Text& line = *value.if_string();
    bool indented = begun ? blank || !line.empty() : first;
    if (std::exchange(begun, true)) out.append("\n");
    if (indented) out.append(space);
    out.append(line);
  }
  return out;
}

Value wordcount(Interpreter&, const Value& value, Params& params) {
  params.done();
  std::size_t count = 0;
  bool inside = false;
  map_chars(to_text(value), [&](char32_t c, std::string&) {
    bool word = is_word(c);
    count += word && !inside;
    inside = word;
  });
  return count;
}

Value center(Interpreter&, const Value& value, Params& params) {
  Int width = params.integer("width", 80);
  params.done();
  return pad(to_text(value), width, ' ', true, true);
}

Value truncate(Interpreter&, const Value& value, Params& params) {
  Int length = params.integer("length", 255);
  bool kill_words = params.boolean("killwords", false);
  Text end = to_text(params.optional("end", "..."));
  Int leeway = params.integer("leeway", 5);
  params.done();
  const Text* text = need(value).if_string();
  if (text == nullptr) fail("truncate(): found '{}', allowed a string", value.type_name());
  Int ending = static_cast<Int>(count_chars(end.view()));
  if (length < ending || leeway < 0) fail("truncate(): length or leeway too small");
  CharIndex index(text->view());
  if (static_cast<Int>(index.count()) <= length + leeway) return *text;
  Text out = text->substr(0, index.at(static_cast<std::size_t>(length - ending)));
  std::size_t space = out.view().rfind(' ');
  if (!kill_words && space != std::string_view::npos) out = out.substr(0, space);
  out.append(end);
  return out;
}

Value format(Interpreter&, const Value& value, Params& params) {
  std::vector<Value> positional;
  while (const Value* next = params.next("")) positional.push_back(*next);
  auto named = params.rest_named();
  if (!positional.empty() && !named.empty())
    fail("format(): positional and keyword arguments at the same time");
  Value arguments = make_list(std::move(positional), Sequence::Kind::kTuple);
  if (!named.empty()) {
    Dict dict;
    for (auto& [name, item] : named) dict.set(Text(name), item);
    arguments = make_dict(std::move(dict));
  }
  return format_percent(to_text(value), arguments);
}

constexpr FilterEntry kFilters[] = {
    {"trim", trim},
    {"upper", simple<upper>},
    {"lower", simple<lower>},
    {"capitalize", simple<capitalize>},
    {"title", simple<title_words>},
    {"string", simple<identity>},
    {"safe", simple<safe>},
    {"escape", simple<escape_html>},
    {"e", simple<escape_html>},
    {"forceescape", simple<force_escape>},
    {"replace", replace_},
    {"indent", indent},
    {"wordcount", wordcount},
    {"center", center},
    {"truncate", truncate},
    {"format", format},
};

}  // namespace

std::span<const FilterEntry> text_filters() { return kFilters; }

}  // namespace vitrine::jinja
