// Python's json.dumps.
#pragma once

#include "jinja/object.h"

namespace vitrine::jinja {

struct DumpOptions {
  bool ascii = false, sort_keys = false;
  std::optional<Text> indent;
  Text item_separator = ", ", key_separator = ": ";
};
Text dumps(const Value& value, const DumpOptions& options);
// The filter's arguments: ensure_ascii, indent, separators, sort_keys.
DumpOptions dump_options(Params& params);

}  // namespace vitrine::jinja
