// Beam search, for `generate`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "engine/request.h"

namespace vitrine {

struct BeamFlags {
  BeamOptions options;
  std::string early_stopping = "false", end_ids;
  Option beams;
  std::vector<Option> others;
  void add(const CommandLine& line);
  bool given() const { return beams.given(); }
  // Makes a beam search of it, and takes the end tokens.
  Status apply(Request& request) const;
};

}  // namespace vitrine
