#include "server/answer/trace_context.h"

#include <algorithm>

namespace vitrine {
namespace {

constexpr std::size_t kLength = 55;

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}
bool is_zero(std::string_view text) {
  return text.find_first_not_of('0') == std::string_view::npos;
}

}  // namespace

bool is_traceparent(std::string_view text) {
  if (text.size() < kLength || text[2] != '-' || text[35] != '-' || text[52] != '-') return false;
  const std::string_view version = text.substr(0, 2), flags = text.substr(53, 2);
  if (!is_hex(version) || version == "ff" || !is_hex(flags)) return false;
  // Only a version that is not known may have more.
  if (text.size() > kLength && (version == "00" || text[kLength] != '-')) return false;
  const std::string_view trace = trace_id_of(text), span = span_id_of(text);
  return is_hex(trace) && is_hex(span) && !is_zero(trace) && !is_zero(span);
}

}  // namespace vitrine
