#include "jinja/string_ops.h"

#include <algorithm>

#include "base/utf8.h"
#include "jinja/chars.h"

namespace vitrine::jinja {

Text replace(const Text& text, const Text& from, const Text& to, Int count, Budget& budget) {
  Text out;
  std::size_t done = 0, at = 0;
  auto put = [&](std::size_t end) {
    budget.make(end - done + to.size());
    out.append(text, done, end);
    out.append(to);
  };
  if (from.empty()) {  // before every character, and at the end
    CharIndex index(text.view());
    for (std::size_t i = 0; i <= index.count() && count != 0; ++i, --count) {
      put(index.at(i));
      done = index.at(i);
    }
  } else {
    for (; count != 0 && (at = text.view().find(from.view(), at)) != std::string_view::npos;
         --count) {
      budget.step();
      put(at);
      done = at += from.size();
    }
  }
  budget.make(text.size() - done);
  out.append(text, done, text.size());
  return out;
}

std::vector<Text> split_lines(const Text& text, bool keep_ends) {
  std::vector<Text> out;
  std::string_view view = text.view();
  std::size_t begin = 0;
  for (std::size_t at = 0; at < view.size();) {
    Utf8Char c = utf8_next(view.substr(at));
    std::size_t next = at + static_cast<std::size_t>(c.length);
    if (is_line_break(c.code)) {
      if (c.code == '\r' && next < view.size() && view[next] == '\n') ++next;
      out.push_back(text.substr(begin, keep_ends ? next : at));
      begin = next;
    }
    at = next;
  }
  if (begin < view.size()) out.push_back(text.substr(begin));
  return out;
}

Text title(const Text& text) {
  bool in_word = false;
  return map_chars(text, [&](char32_t c, std::string& out) {
    if (in_word)
      append_lower(out, c);
    else
      append_upper(out, c);
    in_word = is_cased(c);
  });
}

Text pad(const Text& text, Int width, char fill, bool left, bool right, Budget& budget) {
  Int missing = width - static_cast<Int>(count_chars(text.view()));
  if (missing <= 0) return text;
  if (missing > (Int{1} << 40)) budget.make(SIZE_MAX);
  auto all = static_cast<std::size_t>(missing);
  budget.make(all + text.size());
  // Python's rule for an odd rest: it goes left when the width is odd too.
  std::size_t before = !left    ? 0
                       : !right ? all
                                : all / 2 + (all & static_cast<std::size_t>(width) & 1);
  Text out(std::string(before, fill));
  out.append(text);
  out.append(std::string(all - before, fill));
  return out;
}

}  // namespace vitrine::jinja
