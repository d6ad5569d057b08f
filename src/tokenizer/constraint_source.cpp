#include "tokenizer/constraint_source.h"

#include "grammar/compiler.h"
#include "tokenizer/token_words.h"

namespace vitrine {

Result<std::shared_ptr<ConstraintCompiler>> make_constraint_compiler(const Tokenizer& tokenizer) {
  if (tokenizer.kind() == "WordPiece" || tokenizer.kind() == "word level")
    return make_error(ErrorCode::kUnsupported,
                      "a {} tokenizer adds spaces between its tokens, so texts cannot be "
                      "constrained byte by byte",
                      tokenizer.kind());
  return std::make_shared<ConstraintCompiler>(token_texts(tokenizer));
}

Result<std::shared_ptr<const Constraint>> ConstraintSource::compile(const Tokenizer* tokenizer,
                                                                    const ConstraintSpec& spec,
                                                                    std::string_view scope) const {
  if (tokenizer == nullptr)
    return make_error(ErrorCode::kUnsupported,
                      "{}: the model has no tokenizer, so there is no text to constrain",
                      spec.name);
  std::shared_ptr<ConstraintCompiler> compiler;
  {
    std::lock_guard lock(mutex_);
    if (!compiler_) {
      auto made = make_constraint_compiler(*tokenizer);
      if (!made.ok())
        return make_error(made.error().code, "{}: {}", spec.name, made.error().message);
      compiler_ = std::move(*made);
    }
    compiler = compiler_;
  }
  return compiler->compile(spec, scope);
}

}  // namespace vitrine
