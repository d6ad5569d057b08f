// What the accounts of requests that have ended take, with their lives: a line of the memory plan.
#pragma once

#include "engine/account.h"

namespace vitrine {

// Label, tenant, traceparent and error of one, at most.
inline constexpr std::int64_t kAccountTexts = 1024;
inline constexpr std::int64_t kLivesBytesMost =
    kKeptAccounts * (static_cast<std::int64_t>(sizeof(Account)) + kAccountTexts +
                     32 * static_cast<std::int64_t>(LifeBook::kMostTurns));

}  // namespace vitrine
