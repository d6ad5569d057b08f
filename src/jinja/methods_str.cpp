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
Value simple(Interpreter& run, const Value& self, Args args) {
  Params("str method", std::move(args)).done();
  run.budget().make(own(self).size());
  return kFunction(own(self));
}

template <bool kLeft, bool kRight>
Value strip_(Interpreter& run, const Value& self, Args args) {
  Params params("strip", std::move(args));
  Value chars = params.optional("chars", None{});
  params.done();
  if (!chars.is_none()) string_of(chars, "strip");
  run.budget().make(own(self).size());
  return strip(own(self), kLeft, kRight, chars.if_string());
}

// At white space; `most` cuts, negative: any number.
std::vector<Value> split_at_space(const Text& text, Int most, bool from_right) {
  std::vector<Value> out;
  Text rest = strip(text, !from_right, from_right);
  while (!rest.empty()) {
    std::string_view view = rest.view();
    if (most == 0) {
      out.push_back(rest);
      break;
    }
    --most;
    // The word at the end that is being worked on.
    std::size_t cut = from_right ? view.size() : 0;
    while (from_right ? cut > 0 : cut < view.size()) {
      std::size_t at = cut;
      if (from_right) do
          --at;
        while (at > 0 && (static_cast<unsigned char>(view[at]) & 0xC0) == 0x80);
      Utf8Char c = utf8_next(view.substr(at));
      if (is_space(c.code)) break;
      cut = from_right ? at : at + static_cast<std::size_t>(c.length);
    }
    out.push_back(from_right ? rest.substr(cut) : rest.substr(0, cut));
    rest =
        from_right ? strip(rest.substr(0, cut), false, true) : strip(rest.substr(cut), true, false);
  }
  if (from_right) std::reverse(out.begin(), out.end());
  return out;
}

std::vector<Value> split_at(const Text& text, const Text& separator, Int most, bool from_right) {
  std::vector<Value> out;
  std::string_view view = text.view();
  std::size_t begin = 0, end = view.size();
  while (most-- != 0) {
    std::size_t at = view.npos;
    if (!from_right)
      at = view.find(separator.view(), begin);
    else if (end >= separator.size())
      at = view.rfind(separator.view(), end - separator.size());
    if (at == view.npos) break;
    out.push_back(from_right ? text.substr(at + separator.size(), end) : text.substr(begin, at));
    (from_right ? end : begin) = from_right ? at : at + separator.size();
  }
  out.push_back(text.substr(begin, end));
  if (from_right) std::reverse(out.begin(), out.end());
  return out;
}

template <bool kFromRight>
Value split(Interpreter& run, const Value& self, Args args) {
  Params params("split", std::move(args));
  Value separator = params.optional("sep", None{});
  Int most = params.integer("maxsplit", -1);
  params.done();
  run.budget().make(own(self).size());
  std::vector<Value> out;
  if (separator.is_none()) {
    out = split_at_space(own(self), most, kFromRight);
  } else {
    const Text& by = string_of(separator, "split");
    if (by.empty()) fail("empty separator");
    out = split_at(own(self), by, most, kFromRight);
  }
  run.budget().step(static_cast<std::int64_t>(out.size()));
  return make_list(std::move(out));
}

template <bool kFromRight>
Value partition(Interpreter&, const Value& self, Args args) {
  Params params("partition", std::move(args));
  Value separator = params.required("sep");
  params.done();
  const Text &by = string_of(separator, "partition"), &text = own(self);
  if (by.empty()) fail("empty separator");
  std::size_t at = kFromRight ? text.view().rfind(by.view()) : text.view().find(by.view());
  std::vector<Value> out;
  if (at != std::string_view::npos)
    out = {text.substr(0, at), separator, text.substr(at + by.size())};
  else if (kFromRight)
    out = {"", "", self};
  else
    out = {self, "", ""};
  return make_list(std::move(out), Sequence::Kind::kTuple);
}

Value splitlines(Interpreter& run, const Value& self, Args args) {
  Params params("splitlines", std::move(args));
  bool keep = params.boolean("keepends", false);
  params.done();
  run.budget().make(own(self).size());
  std::vector<Value> out;
  for (Text& line : split_lines(own(self), keep)) out.push_back(std::move(line));
  return make_list(std::move(out));
}

// The part of the string that a method's start and end ask for, and where it begins.
Text window(const Value& self, Params& params, std::size_t& begin) {
  Value from = params.optional("start", None{}), to = params.optional("end", None{});
  begin = 0;
  if (from.is_none() && to.is_none()) return own(self);
  CharIndex index(own(self).view());
  std::vector<std::size_t> chars = slice_indices(index.count(), from, to, 1);
  if (chars.empty()) return {};
  begin = chars.front();
  return own(self).substr(index.at(chars.front()), index.at(chars.back() + 1));
}

template <bool kEnds>
Value starts_or_ends(Interpreter&, const Value& self, Args args) {
  Params params(kEnds ? "endswith" : "startswith", std::move(args));
  Value wanted = need(params.required("prefix"));
  std::size_t begin = 0;
  Text text = window(self, params, begin);
  params.done();
  auto fits = [&](const Value& value) {
    std::string_view part = string_of(value, "startswith").view();
    return kEnds ? text.view().ends_with(part) : text.view().starts_with(part);
  };
  const Sequence* tuple = wanted.if_sequence();
  if (tuple == nullptr || tuple->kind != Sequence::Kind::kTuple) return fits(wanted);
  return std::any_of(tuple->items.begin(), tuple->items.end(), fits);
}

// Position in characters, or -1.
Int find_in(const Value& self, Params& params, bool from_right) {
  Value wanted = params.required("sub");
  std::size_t begin = 0;
  Text text = window(self, params, begin);
  params.done();
  std::string_view part = string_of(wanted, "find").view();
  std::size_t at = from_right ? text.view().rfind(part) : text.view().find(part);
  if (at == std::string_view::npos) return -1;
  return static_cast<Int>(begin + count_chars(text.view().substr(0, at)));
}

template <bool kFromRight, bool kRequired>
Value find(Interpreter&, const Value& self, Args args) {
  Params params("find", std::move(args));
  Int at = find_in(self, params, kFromRight);
  if (kRequired && at < 0) fail("substring not found");
  return at;
}

Value count(Interpreter& run, const Value& self, Args args) {
  Params params("count", std::move(args));
  Value wanted = params.required("sub");
  std::size_t begin = 0;
  Text text = window(self, params, begin);
  params.done();
  const Text& part = string_of(wanted, "count");
  if (part.empty()) return count_chars(text.view()) + 1;
  std::size_t out = 0;
  for (std::size_t at = 0; (at = text.view().find(part.view(), at)) != std::string_view::npos;
       at += part.size()) {
    run.budget().step();
    ++out;
  }
  return out;
}

Value replace_(Interpreter& run, const Value& self, Args args) {
  Params params("replace", std::move(args));
  Value from = params.required("old"), to = params.required("new");
  Int most = params.integer("count", -1);
  params.done();
  return replace(own(self), string_of(from, "replace"), string_of(to, "replace"), most,
                 run.budget());
}

Value join(Interpreter& run, const Value& self, Args args) {
  Params params("join", std::move(args));
  Value items = params.required("iterable");
  params.done();
  Text out;
  bool any = false;
  for (const Value& item : run.iterate(need(items))) {
    const Text& text = string_of(item, "join");
    run.budget().make(text.size() + own(self).size());
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
  if (kPrefix && text.starts_with(part)) return own(self).substr(part.size());
  if (!kPrefix && text.ends_with(part)) return own(self).substr(0, text.size() - part.size());
  return self;
}

template <bool kLeft, bool kRight>
Value justify(Interpreter& run, const Value& self, Args args) {
  Params params("justify", std::move(args));
  Int width = params.integer("width", 0);
  Value fill = params.optional("fillchar", " ");
  params.done();
  const Text& filler = string_of(fill, "justify");
  if (filler.size() != 1) fail("the fill character must be one ASCII character");
  return pad(own(self), width, filler.view()[0], kLeft, kRight, run.budget());
}

Value zfill(Interpreter& run, const Value& self, Args args) {
  Params params("zfill", std::move(args));
  Int width = params.integer("width", 0);
  params.done();
  std::string_view view = own(self).view();
  if (!view.starts_with('-') && !view.starts_with('+'))
    return pad(own(self), width, '0', true, false, run.budget());
  Text out = own(self).substr(0, 1);
  out.append(pad(own(self).substr(1), width - 1, '0', true, false, run.budget()));
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
