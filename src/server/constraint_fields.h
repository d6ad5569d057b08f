// What a request asks of its answer's text: response_format, grammar, regex, choice.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "grammar/compiler.h"
#include "server/json_fields.h"
#include "tokenizer/tokenizer.h"

namespace vitrine {

// The bytes of a tokenizer's tokens. kUnsupported for one whose tokens have no bytes of their own
// (WordPiece).
Result<std::shared_ptr<ConstraintCompiler>> make_constraint_compiler(const Tokenizer& tokenizer);

// The compiler of a server's model, made when it is first needed. Thread-safe.
class ConstraintSource {
 public:
  // Up to a second: for the workers. `tokenizer` may be null, and is the same in all calls.
  Result<std::shared_ptr<const Constraint>> compile(const Tokenizer* tokenizer,
                                                    const ConstraintSpec& spec) const;

 private:
  mutable std::mutex mutex_;
  mutable std::shared_ptr<ConstraintCompiler> compiler_;  // guarded by mutex_
};

// None: any text will do. An error is left in `fields`.
std::optional<ConstraintSpec> read_constraint(JsonFields& fields);

}  // namespace vitrine
