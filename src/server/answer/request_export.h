// One request for other programs: as a trace in Chrome's JSON, which ui.perfetto.dev opens, and as
// OTLP/JSON, which collectors of OpenTelemetry take. Both say what its life says.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "server/answer/request_found.h"

namespace vitrine {

// A choice of it.
struct ExportedChoice {
  const FoundRequest* found = nullptr;
  std::span<const FoundSteps::Row> steps;  // those that are to be told
  // What it was asked and what it said, where that may and should be told.
  std::shared_ptr<const std::string> input;
  std::optional<std::string> output;
};

// A track for each choice: all of its life, within that the parts, within those its steps; counters of
// what its rows read and computed in a second. Microseconds since its first byte, ascending; `args` has
// nanoseconds.
json::object request_perfetto(const std::vector<ExportedChoice>& choices, const Names& names);

// A span for each choice, with a child for each part of its life. The caller's span (traceparent) is the
// parent. Ids are the same whenever it is asked for, and only then.
json::object request_otlp(const std::vector<ExportedChoice>& choices, const Names& names,
                          const std::string& model, const std::string& version);

}  // namespace vitrine
