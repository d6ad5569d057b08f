// --user and --sandbox.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/command_line.h"

namespace vitrine {

struct Confinement {
  std::string user;
  bool sandbox = false;
  void add(const CommandLine& line);
  // When the ports are open and the files that only root reads are read: become the user.
  Status drop() const;
  // When everything is loaded. `reread`: files that may be read again; empty names are none.
  Status enter(std::string_view backend, std::vector<std::string> reread) const;
};

}  // namespace vitrine
