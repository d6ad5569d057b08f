// How the files of a page's folder are served, by their names within it ("assets/index-4f1c.js"). The
// build asks at compile time, for what it embeds; the loader of --ui-dir asks at start.
#pragma once

#include <string_view>

namespace vitrine {

inline constexpr std::string_view kPageFile = "index.html";  // its path is "/"
inline constexpr std::string_view kFolderPath = "/ui/";      // of all others, before the name
inline constexpr std::size_t kEtagDigits = 32;               // of a SHA-256 in hex
inline constexpr const char* kKnownTypes = "html, js, css, svg, json, woff2, png, ico, txt";

// By the extension; empty: it is none of kKnownTypes.
constexpr std::string_view content_type(std::string_view name) {
  struct Entry {
    std::string_view extension, type;
  };
  constexpr Entry kTypes[] = {
      {".html", "text/html; charset=utf-8"},
      {".js", "text/javascript; charset=utf-8"},
      {".css", "text/css; charset=utf-8"},
      {".svg", "image/svg+xml"},
      {".json", "application/json"},
      {".woff2", "font/woff2"},
      {".png", "image/png"},
      {".ico", "image/x-icon"},
      {".txt", "text/plain; charset=utf-8"},
  };
  for (const Entry& entry : kTypes)
    if (name.ends_with(entry.extension)) return entry.type;
  return {};
}

// Files below assets/ have a hash of their bytes in their names.
constexpr bool has_hashed_name(std::string_view name) { return name.starts_with("assets/"); }

// Paths are matched as they are sent, so a name is what needs no encoding in a URL.
constexpr bool is_plain_name(std::string_view name) {
  return !name.empty() && name.find_first_not_of(
                              "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                              "0123456789._/-") == name.npos;
}

}  // namespace vitrine
