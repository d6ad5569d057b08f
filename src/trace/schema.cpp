#include "trace/schema.h"

#include <fmt/format.h>

#include "base/json.h"
#include "trace/events.h"

namespace vitrine {
namespace {

std::string quoted(std::string_view text) {
  std::string out;
  append_json(out, text);
  return out;
}

std::string typescript(const FieldInfo& f) {
  return fmt::format("[{}, {}, {}]", quoted(f.unit), quoted(f.from), quoted(f.help));
}

std::string markdown(const FieldInfo& f, std::string_view name) {
  return fmt::format("| `{}` | {} | {} | {} |\n", name, f.unit, f.from, f.help);
}

}  // namespace

std::string schema_typescript() {
  std::string out =
      "// What the engine tells, field by field: unit, source, meaning. Printed by `trace_schema "
      "ts` from\n"
      "// src/trace/events.def; a test compares them.\n";
  for (const EventInfo& event : all_events()) {
    out += fmt::format("\n// {}.\nexport const {} = {{\n", event.when, event.name);
    for (const FieldInfo& field : event.fields) {
      if (!field.is_list()) {
        out += fmt::format("  {}: {},\n", quoted(field.name), typescript(field));
        continue;
      }
      out += fmt::format("  {}: {{\n", quoted(field.name));
      for (const FieldInfo& column : field.columns)
        out += fmt::format("    {}: {},\n", quoted(column.name), typescript(column));
      out += "  },\n";
    }
    out += "} as const;\n";
  }
  return out;
}

std::string schema_markdown() {
  std::string out;
  for (const EventInfo& event : all_events()) {
    out += fmt::format(
        "\n**`{}`**: {}.\n\n| field | unit | source | meaning |\n| --- | --- | --- | --- |\n",
        event.name, event.when);
    for (const FieldInfo& field : event.fields) {
      if (!field.is_list()) {
        out += markdown(field, field.name);
        continue;
      }
      out += fmt::format("| `{}` | list | | {}; a row: |\n", field.name, field.help);
      for (const FieldInfo& column : field.columns)
        out += markdown(column, fmt::format("{}[].{}", field.name, column.name));
    }
  }
  return out;
}

}  // namespace vitrine
