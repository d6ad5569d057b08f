#include "jinja/string_ops.h"

#include <algorithm>
#include <cstring>

#include "base/utf8.h"
#include "jinja/chars.h"

namespace vitrine::jinja {

Search::Search(std::string_view text, std::string_view part, bool from_right)
    : text_(text), part_(part), from_right_(from_right) {
  charge_read(text.size() + part.size());
  if (!from_right) return;
  charge_bytes(text.size() + part.size());
  reversed_text_.assign(text.rbegin(), text.rend());
  reversed_part_.assign(part.rbegin(), part.rend());
  text_ = reversed_text_;
  part_ = reversed_part_;
}

std::optional<std::size_t> Search::next() {
  if (at_ > text_.size() || part_.size() > text_.size() - at_) return std::nullopt;
  charge();
  std::size_t found = at_;
  if (!part_.empty()) {
    // glibc's memmem is linear in the worst case.
    const void* place = memmem(text_.data() + at_, text_.size() - at_, part_.data(), part_.size());
    if (place == nullptr) return std::nullopt;
    found = static_cast<std::size_t>(static_cast<const char*>(place) - text_.data());
  }
  at_ = found + std::max<std::size_t>(part_.size(), 1);
  return from_right_ ? text_.size() - found - part_.size() : found;
}

Text replace(const Text& text, const Text& from, const Text& to, Int count) {
  Text out;
  std::size_t done = 0;
  auto put = [&](std::size_t end) {
    out.append(text, done, end);
    out.append(to);
    done = end;
  };
  if (from.empty()) {  // before every character, and at the end
    CharIndex index(text.view());
    for (std::size_t i = 0; i <= index.count() && count != 0; ++i, --count) put(index.at(i));
  } else {
    Search search(text.view(), from.view());
    for (; count != 0; --count) {
      std::optional<std::size_t> at = search.next();
      if (!at) break;
      put(*at);
      done += from.size();
    }
  }
  out.append(text, done, text.size());
  return out;
}

std::vector<Value> split_lines(const Text& text, bool keep_ends) {
  charge_chars(text.size());
  std::vector<Value> out;
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

Text pad(const Text& text, Int width, char fill, bool left, bool right) {
  Int missing = width - static_cast<Int>(count_chars(text.view()));
  if (missing <= 0) return text;
  auto all = static_cast<std::size_t>(std::min<Int>(missing, Int{1} << 40));
  need_room(all, all);
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
