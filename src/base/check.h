// VT_CHECK: a broken invariant of ours (never of a file or a client). Always on; prints and aborts.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

namespace vitrine {

[[noreturn]] inline void check_failed(const char* file, int line, const char* what,
                                      const std::string& message) {
  fmt::print(stderr, "{}:{}: check failed: {} {}\n", file, line, what, message);
  std::fflush(stderr);
  std::abort();
}

}  // namespace vitrine

#define VT_CHECK(condition, ...)                                                              \
  do {                                                                                        \
    if (!(condition)) [[unlikely]]                                                            \
      ::vitrine::check_failed(__FILE__, __LINE__, #condition, ::fmt::format("" __VA_ARGS__)); \
  } while (false)
