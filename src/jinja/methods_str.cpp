// Methods of strings.
#include <algorithm>

#include "base/utf8.h"
#include "jinja/chars.h"
#include "jinja/methods.h"
#include "jinja/string_ops.h"

namespace vitrine::jinja {
namespace {

const Text& own(const Value& self) { return *self.if_string(); }

const Text& string_of(const Value& value, const char* method) {
  need(value);
  if (!value.is_string()) fail("{}(): found '{}', allowed a string", method, value.type_name());
  return *value.if_string();
}

template <Text (*kFunction)(const Text&)>
Value simple(Interpreter&, const Value& self, Args args) {
  Params("str method", std::move(args)).done();
  return kFunction(own(self));
}

template <bool kLeft, bool kRight>
Value strip_(Interpreter&, const Value& self, Args args) {
  Params params("strip", std::move(args));
  Value chars = params.optional("chars", None{});
  params.done();
  if (!chars.is_none()) string_of(chars, "strip");
  return strip(own(self), kLeft, kRight, chars.if_string());
}

// At white space; `most` cuts, negative: any number.
std::vector<Value> split_at_space(const Text& text, Int most, bool from_right) {
  std::string_view view = text.view();
  charge_chars(view.size());
  std::size_t begin = 0, end = view.size();  // of what is left
  // The place after the next character from the end that is worked on, and whether that is a space.
  auto next = [&](std::size_t at, bool& space) {
    std::size_t start = at;
    if (from_right) do
        --start;
      while (start > begin && (static_cast<unsigned char>(view[start]) & 0xC0) == 0x80);
    Utf8Char c = utf8_next(view.substr(start));
    space = is_space(c.code);
    return from_right ? start : at + static_cast<std::size_t>(c.length);
  };
  // Passes over characters that are spaces, or that are none.
  auto pass = [&](std::size_t at, bool spaces) {
    std::size_t border = from_right ? begin : end;
    for (bool space = false; at != border;) {
      std::size_t after = next(at, space);
      if (space != spaces) break;
      at = after;
    }
    return at;
  };
  std::vector<Value> out;
  std::size_t& near = from_right ? end : begin;
  for (near = pass(near, true); begin < end; near = pass(near, true), --most) {
    std::size_t cut = most == 0 ? (from_right ? begin : end) : pass(near, false);
    out.push_back(from_right ? text.substr(cut, end) : text.substr(begin, cut));
    near = cut;
  }
  if (from_right) std::reverse(out.begin(), out.end());
  return out;
}

std::vector<Value> split_at(const Text& text, const Text& separator, Int most, bool from_right) {
  std::vector<Value> out;
  std::size_t begin = 0, end = text.size();
  Search search(text.view(), separator.view(), from_right);
  for (; most != 0; --most) {
    std::optional<std::size_t> at = search.next();
    if (!at) break;
    std::size_t after = *at + separator.size();
    out.push_back(from_right ? text.substr(after, end) : text.substr(begin, *at));
    (from_right ? end : begin) = from_right ? *at : after;
  }
  out.push_back(text.substr(begin, end));
  if (from_right) std::reverse(out.begin(), out.end());
  return out;
}

template <bool kFromRight>
Value split(Interpreter&, const Value& self, Args args) {
  Params params("split", std::move(args));
  Value separator = params.optional("sep", None{});
  Int most = params.integer("maxsplit", -1);
  params.done();
  std::vector<Value> out;
  if (separator.is_none()) {
    out = split_at_space(own(self), most, kFromRight);
  } else {
    const Text& by = string_of(separator, "split");
    if (by.empty()) fail("empty separator");
    out = split_at(own(self), by, most, kFromRight);
  }
  return make_list(std::move(out));
}

template <bool kFromRight>
Value partition(Interpreter&, const Value& self, Args args) {
  Params params("partition", std::move(args));
  Value separator = params.required("sep");
  params.done();
  const Text &by = string_of(separator, "partition"), &text = own(self);
  if (by.empty()) fail("empty separator");
  std::optional<std::size_t> at = Search(text.view(), by.view(), kFromRight).next();
  std::vector<Value> out;
  if (at)
    out = {text.substr(0, *at), separator, text.substr(*at + by.size())};
  else if (kFromRight)
    out = {"", "", self};
  else
    out = {self, "", ""};
  return make_list(std::move(out), Sequence::Kind::kTuple);
}

Value splitlines(Interpreter&, const Value& self, Args args) {
  Params params("splitlines", std::move(args));
  bool keep = params.boolean("keepends", false);
  params.done();
  return make_list(split_lines(own(self), keep));
}

// The part of the string that a method's start and end ask for, and where it begins.
std::string_view window(const Value& self, Params& params, std::size_t& begin) {
  Value from = params.optional("start", None{}), to = params.optional("end", None{});
  begin = 0;
  std::string_view text = own(self).view();
  if (from.is_none() && to.is_none()) return text;
  CharIndex index(text);
  Slice chars = slice_of(index.count(), from, to, 1);
  if (chars.count == 0) return {};
  begin = chars[0];
  return text.substr(index.at(begin), index.at(chars[chars.count]) - index.at(begin));
}

template <bool kEnds>
Value starts_or_ends(Interpreter&, const Value& self, Args args) {
  Params params(kEnds ? "endswith" : "startswith", std::move(args));
  Value wanted = need(params.required("prefix"));
  std::size_t begin = 0;
  std::string_view text = window(self, params, begin);
  params.done();
  auto fits = [&](const Value& value) {
    std::string_view part = string_of(value, "startswith").view();
    charge_read(part.size());
    return kEnds ? text.ends_with(part) : text.starts_with(part);
  };
  const Sequence* tuple = wanted.if_sequence();
  if (tuple == nullptr || tuple->kind != Sequence::Kind::kTuple) return fits(wanted);
  return std::any_of(tuple->items.begin(), tuple->items.end(), fits);
}

// Position in characters, or -1.
Int find_in(const Value& self, Params& params, bool from_right) {
  Value wanted = params.required("sub");
  std::size_t begin = 0;
  std::string_view text = window(self, params, begin);
  params.done();
  std::string_view part = string_of(wanted, "find").view();
  std::optional<std::size_t> at = Search(text, part, from_right).next();
  return at ? static_cast<Int>(begin + count_chars(text.substr(0, *at))) : -1;
}

template <bool kFromRight, bool kRequired>
Value find(Interpreter&, const Value& self, Args args) {
  Params params("find", std::move(args));
  Int at = find_in(self, params, kFromRight);
  if (kRequired && at < 0) fail("substring not found");
  return at;
}

Value count(Interpreter&, const Value& self, Args args) {
  Params params("count", std::move(args));
  Value wanted = params.required("sub");
  std::size_t begin = 0;
  std::string_view text = window(self, params, begin);
  params.done();
  const Text& part = string_of(wanted, "count");
  if (part.empty()) return count_chars(text) + 1;
  Search search(text, part.view());
  std::size_t out = 0;
  while (search.next()) ++out;
  return out;
}

Value replace_(Interpreter&, const Value& self, Args args) {
  Params params("replace", std::move(args));
  Value from = params.required("old"), to = params.required("new");
  Int most = params.integer("count", -1);
  params.done();
  return replace(own(self), string_of(from, "replace"), string_of(to, "replace"), most);
}

Value join(Interpreter& run, const Value& self, Args args) {
  Params params("join", std::move(args));
  Value items = params.required("iterable");
  params.done();
  Text out;
  bool any = false;
  for (const Value& item : run.iterate(need(items))) {
    const Text& text = string_of(item, "join");
    if (std::exchange(any, true)) out.append(own(self));
    out.append(text);
  }
  return out;
}

template <bool kPrefix>
Value remove_affix(Interpreter&, const Value& self, Args args) {
  Params params("removeprefix", std::move(args));
  Value affix = params.required("affix");
  params.done();
  std::string_view part = string_of(affix, "removeprefix").view(), text = own(self).view();
  charge_read(part.size());
  if (kPrefix && text.starts_with(part)) return own(self).substr(part.size());
  if (!kPrefix && text.ends_with(part)) return own(self).substr(0, text.size() - part.size());
  return self;
}

template <bool kLeft, bool kRight>
Value justify(Interpreter&, const Value& self, Args args) {
  Params params("justify", std::move(args));
  Int width = params.integer("width", 0);
  Value fill = params.optional("fillchar", " ");
  params.done();
  const Text& filler = string_of(fill, "justify");
  if (filler.size() != 1) fail("the fill character must be one ASCII character");
  return pad(own(self), width, filler.view()[0], kLeft, kRight);
}

Value zfill(Interpreter&, const Value& self, Args args) {
  Params params("zfill", std::move(args));
  Int width = params.integer("width", 0);
  params.done();
  std::string_view view = own(self).view();
  if (!view.starts_with('-') && !view.starts_with('+'))
    return pad(own(self), width, '0', true, false);
  Text out = own(self).substr(0, 1);
  out.append(pad(own(self).substr(1), width - 1, '0', true, false));
  return out;
}

Value format(Interpreter& run, const Value& self, Args args) {
  return format_braces(run, own(self), args);
}

// Every character fits, and there is one.
template <bool (*kFits)(char32_t)>
Value all_chars(Interpreter&, const Value& self, Args args) {
  Params("str test", std::move(args)).done();
  bool ok = !own(self).empty();
  map_chars(own(self), [&](char32_t c, std::string&) { ok = ok && kFits(c); });
  return ok;
}

// Some character has the case, and none the other.
template <bool (*kRight)(char32_t), bool (*kWrong)(char32_t)>
Value all_case(Interpreter&, const Value& self, Args args) {
  Params("str test", std::move(args)).done();
  bool any = false, bad = false;
  map_chars(own(self), [&](char32_t c, std::string&) {
    any = any || kRight(c);
    bad = bad || kWrong(c);
  });
  return any && !bad;
}

bool is_alnum(char32_t c) { return c != '_' && is_word(c); }
bool is_ascii(char32_t c) { return c < 0x80; }

Text swap_case(const Text& text) {
  return map_chars(text, [](char32_t c, std::string& out) {
    if (is_upper(c))
      append_lower(out, c);
    else
      append_upper(out, c);
  });
}

constexpr MethodEntry kMethods[] = {
    {"strip", strip_<true, true>},
    {"lstrip", strip_<true, false>},
    {"rstrip", strip_<false, true>},
    {"split", split<false>},
    {"rsplit", split<true>},
    {"partition", partition<false>},
    {"rpartition", partition<true>},
    {"splitlines", splitlines},
    {"startswith", starts_or_ends<false>},
    {"endswith", starts_or_ends<true>},
    {"find", find<false, false>},
    {"rfind", find<true, false>},
    {"index", find<false, true>},
    {"rindex", find<true, true>},
    {"count", count},
    {"replace", replace_},
    {"join", join},
    {"removeprefix", remove_affix<true>},
    {"removesuffix", remove_affix<false>},
    {"ljust", justify<false, true>},
    {"rjust", justify<true, false>},
    {"center", justify<true, true>},
    {"zfill", zfill},
    {"format", format},
    {"upper", simple<upper>},
    {"lower", simple<lower>},
    {"casefold", simple<lower>},
    {"capitalize", simple<capitalize>},
    {"title", simple<title>},
    {"swapcase", simple<swap_case>},
    {"isspace", all_chars<is_space>},
    {"isalpha", all_chars<is_alpha>},
    {"isdigit", all_chars<is_digit>},
    {"isdecimal", all_chars<is_digit>},
    {"isnumeric", all_chars<is_digit>},
    {"isalnum", all_chars<is_alnum>},
    {"isascii", all_chars<is_ascii>},
    {"isupper", all_case<is_upper, is_lower>},
    {"islower", all_case<is_lower, is_upper>},
};

}  // namespace

std::span<const MethodEntry> string_methods() { return kMethods; }

}  // namespace vitrine::jinja
