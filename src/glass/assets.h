// The web page as part of the program: files with their encodings, embedded when it is built.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace vitrine {

// A file of the page. What it refers to outlives every server.
struct Asset {
  std::string_view path;  // as it is asked for: "/", "/ui/icon.svg"
  std::string_view content_type;
  std::string_view etag;            // hex digits, of the raw bytes; without quotes
  bool immutable = false;           // its name changes with its bytes
  std::span<const std::byte> raw;   // as the file is
  std::span<const std::byte> gzip;  // empty: there is none
  std::span<const std::byte> brotli;
};

// Those of the build's page; there is always one with the path "/".
std::span<const Asset> ui_assets();
// By its exact path; null when there is none.
const Asset* find_asset(std::span<const Asset> assets, std::string_view path);

}  // namespace vitrine
