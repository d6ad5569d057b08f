// A command of the program: one file under commands/.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <span>

namespace vitrine {

struct Command {
  const char* name;
  int order;  // in the help
  const char* help;
  // Adds the command's flags and returns what to do once they are parsed. The result is the exit
  // code: 0 done, 1 bad input. (2, bad usage, is the parser's.)
  std::function<int()> (*add)(CLI::App& app);
};
std::span<const Command* const> all_commands();

}  // namespace vitrine
