#include "server/answer/chrome_trace.h"

#include <algorithm>

namespace vitrine {

void ChromeTrace::sort() {
  const auto number = [](const json::value& event, std::string_view name) {
    const json::value* found = event.as_object().if_contains(name);
    return found == nullptr ? -1.0 : found->to_number<double>();
  };
  std::stable_sort(events_.begin(), events_.end(), [&](const json::value& a, const json::value& b) {
    const double x = number(a, "ts"), y = number(b, "ts");
    return x != y ? x < y : number(a, "dur") > number(b, "dur");
  });
}

}  // namespace vitrine
