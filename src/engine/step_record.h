// The engine keeps the records of its last steps.
#pragma once

#include "engine/account.h"
#include "trace/step_record.h"

namespace vitrine {

inline constexpr int kKeptRecords = 1024;  // at most: fewer where the log is too small for them

}  // namespace vitrine
