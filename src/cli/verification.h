// What `vitrine verify` prints of what it found.
#pragma once

#include <string>

#include "base/json.h"
#include "verify/verify.h"

namespace vitrine {

// What the backend promises, in words.
std::string promise_of(const verify::Report& report);
// `replay`: the command line without the condition and the case. Both end with the command that asks the case of
// each difference again.
json::object report_json(const verify::Report& report, const std::string& replay);
std::string report_text(const verify::Report& report, const std::string& replay);
// 0: as promised; 1: not.
int exit_code(const verify::Report& report);

}  // namespace vitrine
