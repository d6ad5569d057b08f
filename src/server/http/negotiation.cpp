#include "server/http/negotiation.h"

#include <algorithm>
#include <optional>

#include "server/http/head.h"

namespace vitrine {
namespace {

std::string_view trimmed(std::string_view text) {
  auto first = text.find_first_not_of(" \t");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// What stands before `mark`; the text goes on behind it.
std::string_view cut(std::string_view& text, char mark) {
  auto end = std::min(text.find(mark), text.size());
  auto out = trimmed(text.substr(0, end));
  text.remove_prefix(std::min(end + 1, text.size()));
  return out;
}

// "gzip;q=0.5": whether its weight is above 0. Without one it is 1.
bool wanted(std::string_view parameters) {
  while (!parameters.empty()) {
    auto parameter = cut(parameters, ';');
    auto name = cut(parameter, '=');
    if (!equals_ignoring_case(name, "q")) continue;
    bool number = parameter.find_first_not_of("0123456789.") == parameter.npos;
    return number && parameter.find_first_of("123456789") != parameter.npos;
  }
  return true;
}

// The tag at the start of `list`, with its quotes; the list goes on behind it. Empty: there is none.
std::string_view next_etag(std::string_view& list) {
  list.remove_prefix(std::min(list.find_first_not_of(" \t,"), list.size()));
  if (list.starts_with("W/")) list.remove_prefix(2);
  if (!list.starts_with('"')) return {};
  auto end = list.find('"', 1);
  if (end == list.npos) return {};
  auto out = list.substr(0, end + 1);
  list.remove_prefix(end + 1);
  return out;
}

}  // namespace

bool accepts_encoding(const HttpRequest& request, std::string_view coding) {
  std::optional<bool> named, any;
  for (const auto& [header, value] : request.headers) {
    if (header != "accept-encoding") continue;
    std::string_view rest = value;
    while (!rest.empty()) {
      auto item = cut(rest, ',');
      auto name = cut(item, ';');
      if (equals_ignoring_case(name, coding)) named = wanted(item);
      if (name == "*") any = wanted(item);
    }
  }
  return named.value_or(any.value_or(false));
}

bool has_etag(const HttpRequest& request, std::string_view etag) {
  for (const auto& [header, value] : request.headers) {
    if (header != "if-none-match") continue;
    std::string_view rest = value;
    if (trimmed(rest) == "*") return true;
    for (auto tag = next_etag(rest); !tag.empty(); tag = next_etag(rest))
      if (tag == etag) return true;
  }
  return false;
}

}  // namespace vitrine
