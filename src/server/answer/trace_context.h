// W3C Trace Context: the caller's span, as the header `traceparent` names it.
#pragma once

#include <string_view>

namespace vitrine {

// "00-<32 hex digits>-<16 hex digits>-<2 hex digits>", lower case, neither id all zeros; later versions may
// have more behind it. What is not valid counts as not sent.
bool is_traceparent(std::string_view text);

inline std::string_view trace_id_of(std::string_view traceparent) {
  return traceparent.substr(3, 32);
}
inline std::string_view span_id_of(std::string_view traceparent) {
  return traceparent.substr(36, 16);
}

}  // namespace vitrine
