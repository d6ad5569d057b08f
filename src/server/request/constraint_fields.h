// What a request asks of its answer's text: response_format, grammar, regex, choice.
#pragma once

#include <optional>

#include "grammar/compiler.h"
#include "server/request/json_fields.h"

namespace vitrine {

// None: free text. An error is left in `fields`.
std::optional<ConstraintSpec> read_constraint(JsonFields& fields);

}  // namespace vitrine
