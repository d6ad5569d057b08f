// Constraints on text, compiled for a tokenizer.
#pragma once

#include <memory>
#include <mutex>
#include <string_view>

#include "base/result.h"

namespace vitrine {

class Constraint;
class ConstraintCompiler;
class Tokenizer;
struct ConstraintSpec;

// The bytes of a tokenizer's tokens. kUnsupported for one whose tokens have no bytes of their own
// (WordPiece).
Result<std::shared_ptr<ConstraintCompiler>> make_constraint_compiler(const Tokenizer& tokenizer);

// The compiler of a model, made when it is first needed. Thread-safe.
class ConstraintSource {
 public:
  // Up to a second: for the workers. `tokenizer` may be null, and is the same in all calls. What
  // was compiled is found again only under the same `scope`.
  Result<std::shared_ptr<const Constraint>> compile(const Tokenizer* tokenizer,
                                                    const ConstraintSpec& spec,
                                                    std::string_view scope = {}) const;

 private:
  mutable std::mutex mutex_;
  mutable std::shared_ptr<ConstraintCompiler> compiler_;  // guarded by mutex_
};

}  // namespace vitrine
