// What a request asks of its answer's text: response_format, grammar, regex, choice.
#pragma once

#include <memory>
#include <optional>

#include "grammar/compiler.h"
#include "server/constraint_source.h"
#include "server/json_fields.h"
#include "tokenizer/tokenizer.h"

namespace vitrine {

// The bytes of a tokenizer's tokens. kUnsupported for one whose tokens have no bytes of their own
// (WordPiece).
Result<std::shared_ptr<ConstraintCompiler>> make_constraint_compiler(const Tokenizer& tokenizer);

// None: any text will do. An error is left in `fields`.
std::optional<ConstraintSpec> read_constraint(JsonFields& fields);

}  // namespace vitrine
