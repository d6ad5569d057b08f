// The results of a load as aligned tables.
#pragma once

#include <string>
#include <vector>

#include "load/plan.h"
#include "load/stats.h"

namespace vitrine::load {

// "closed loop of 16, 64 requests; prompt 128 tokens (cv 0), output 64 (cv 1); ..."
std::string describe(const LoadSpec& spec, const Slo& slo);

std::string table(const Summary& summary);

// Several servers under the same load: a name, and the runs.
struct Column {
  std::string name;
  std::vector<Summary> runs;
};
// Medians side by side, and the first column divided by each of the others.
std::string comparison_table(const std::vector<Column>& columns);
json::object comparison_json(const std::vector<Column>& columns);

}  // namespace vitrine::load
