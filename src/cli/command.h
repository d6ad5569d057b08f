// A command of the program: one file under commands/.
#pragma once

#include <functional>
#include <span>

#include "base/result.h"
#include "cli/command_line.h"

namespace vitrine {

// What to do once the line is parsed. The result is the exit code: 0 done, 1 bad input. (2, bad
// usage, is the parser's.) An error is printed and means 1.
using Action = std::function<Result<int>()>;

struct Command {
  const char* name;
  int order;  // in the help
  const char* help;
  Action (*add)(const CommandLine& line);
};
std::span<const Command* const> all_commands();

}  // namespace vitrine
