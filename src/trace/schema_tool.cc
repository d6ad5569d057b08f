// trace_schema ts|md: prints the table of events.def as the page or docs/trace.md has it.
#include <cstdio>
#include <string_view>

#include "trace/schema.h"

int main(int argc, char** argv) {
  const std::string_view what = argc == 2 ? argv[1] : "";
  if (what != "ts" && what != "md") {
    std::fputs("usage: trace_schema ts|md\n", stderr);
    return 2;
  }
  const std::string text = what == "ts" ? vitrine::schema_typescript() : vitrine::schema_markdown();
  std::fputs(text.c_str(), stdout);
  return 0;
}
