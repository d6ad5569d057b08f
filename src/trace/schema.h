// The table of events.def for people and for the page. `trace_schema ts` and `trace_schema md` print it.
#pragma once

#include <string>

namespace vitrine {

std::string schema_typescript();  // ui/src/data/schema.gen.ts
std::string schema_markdown();    // what docs/trace.md has behind "<!-- events.def -->"

}  // namespace vitrine
