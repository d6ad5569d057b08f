// A vocabulary like those of current models, made up: every byte, words with and without a space in
// front, numbers, runs of blanks, punctuation as code and JSON have it, pieces of other scripts.
#pragma once

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/utf8.h"

namespace vitrine::grammar::test {

inline std::vector<std::string> made_up_vocabulary(std::size_t size, unsigned seed = 1) {
  std::mt19937 rng(seed);
  std::vector<std::string> out;
  std::set<std::string> known;
  auto add = [&](const std::string& piece) {
    if (!piece.empty() && out.size() < size && known.insert(piece).second) out.push_back(piece);
  };
  for (int b = 0; b < 256; ++b) add(std::string(1, static_cast<char>(b)));
  for (int i = 0; i < 1000; ++i) add(std::to_string(i));
  for (std::size_t n = 2; n <= 128; ++n)
    add(std::string(n, ' ')), add("\n" + std::string(n / 4, ' '));
  const char* marks[] = {"\"",  "\",", "\":", "\": ", "\"}", "{\"", "[\"", "\"]", "},",   "}]",
                         "{",   "}",   "[",   "]",    ":",   ", ",  "\n",  " \"", ", \"", "\\\"",
                         "\\n", "\\",  "\\u", "://",  "()",  ");",  "=\"", "'",   "--"};
  for (const char* a : marks)
    for (const char* b : marks) add(std::string(a) + b);
  const char* syllables[] = {"a",  "e",  "in",   "on", "er",  "st",  "re",  "th",  "al",  "is",
                             "or", "un", "ment", "ly", "con", "pro", "de",  "ta",  "mi",  "so",
                             "ka", "lo", "ing",  "ed", "the", "and", "for", "str", "get", "name"};
  auto pick = [&](auto& list) { return std::string(list[rng() % std::size(list)]); };
  while (out.size() < size) {
    std::string word;
    for (unsigned n = 1 + rng() % 4; n > 0; --n) word += pick(syllables);
    switch (rng() % 16) {
      case 0:
        word[0] = static_cast<char>(word[0] - 32);
        break;
      case 1:
        for (char& c : word) c = static_cast<char>(c - 32);
        break;
      case 2:
        word.clear();
        for (unsigned n = 1 + rng() % 3, base = 0x4E00 + rng() % 20000; n > 0; --n)
          utf8_append(word, static_cast<char32_t>(base + rng() % 64));
        break;
      case 3:
        word.clear();
        for (unsigned n = 1 + rng() % 6; n > 0; --n) utf8_append(word, 0x430 + rng() % 32);
        if (rng() % 8 == 0) word.pop_back();  // part of a character
        break;
      case 4:
        word = pick(marks) + word;
        break;
      case 5:
        word += pick(marks);
        break;
      default:
        break;
    }
    add(rng() % 2 ? " " + word : word);
  }
  return out;
}

}  // namespace vitrine::grammar::test
