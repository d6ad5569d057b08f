// Constraints of requests, compiled for the server's model.
#pragma once

#include <memory>
#include <mutex>

#include "base/result.h"

namespace vitrine {

class Constraint;
class ConstraintCompiler;
class Tokenizer;
struct ConstraintSpec;

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

}  // namespace vitrine
