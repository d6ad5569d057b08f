// From a ConstraintSpec to rules.
#pragma once

#include <string>

#include "grammar/compiler.h"

namespace vitrine::grammar {

// Equal for specs that mean the same.
std::string cache_key(const ConstraintSpec& spec);

// Adds a rule that derives the JSON which `schema` admits, and what it needs. `what` names the
// schema in errors.
struct SchemaOptions {
  bool any_order = false;
};
Result<std::uint32_t> add_schema(Program& program, const boost::json::value& schema,
                                 std::string_view what, SchemaOptions options, Budget& budget);
// Wrap the root in another rule, which becomes the root; see ToolCallSpec and Prelude.
Status write_tools(Program& program, const ToolCallSpec& tools, std::string_view what,
                   SchemaOptions options, Budget& budget);
// Either what rule `one` derives, or `before` and then what the root does.
void write_either(Program& program, std::uint32_t one, std::string_view before);
void write_prelude(Program& program, const ConstraintSpec::Prelude& prelude);

}  // namespace vitrine::grammar
