// Characters as Python sees them.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "jinja/text.h"

namespace vitrine::jinja {

bool is_space(char32_t c);       // str.isspace
bool is_printable(char32_t c);   // repr shows it as it is
bool is_line_break(char32_t c);  // str.splitlines
bool is_upper(char32_t c);
bool is_lower(char32_t c);
bool is_cased(char32_t c);
bool is_alpha(char32_t c);
bool is_digit(char32_t c);
bool is_word(char32_t c);  // \w

// Each character replaced by what `map` appends for it; its mark (caller or template) is kept.
Text map_chars(const Text& text, const std::function<void(char32_t, std::string&)>& map);
Text upper(const Text& text);
Text lower(const Text& text);
Text capitalize(const Text& text);
void append_upper(std::string& out, char32_t c);
void append_lower(std::string& out, char32_t c);

// <, >, &, ' and " as HTML escapes, unless the text is escaped already.
Text escape_html(const Text& text);

// Without the white space, or the characters of `chars`, at its ends.
Text strip(const Text& text, bool left, bool right, const Text* chars = nullptr);

}  // namespace vitrine::jinja
