#include "jinja/template.h"

#include "base/utf8.h"
#include "jinja/interpreter.h"

namespace vitrine::jinja {

class TemplateBody {
 public:
  Body statements;
};

Template::Template(std::string name, std::unique_ptr<TemplateBody> body)
    : name_(std::move(name)), body_(std::move(body)) {}
Template::~Template() = default;

Result<std::unique_ptr<Template>> Template::parse(std::string_view source, std::string name) {
  if (source.size() > kMaxSourceBytes)
    return make_error(ErrorCode::kTooLarge, "{}: found {} bytes, allowed up to {}", name,
                      source.size(), kMaxSourceBytes);
  if (!utf8_valid(source)) return make_error(ErrorCode::kMalformed, "{}: not UTF-8", name);
  auto body = std::make_unique<TemplateBody>();
  try {
    body->statements = jinja::parse(source);
  } catch (const SyntaxFailure& failure) {
    return make_error(ErrorCode::kMalformed, "{}, line {}, column {}: {}", name, failure.at.line,
                      failure.at.column, failure.message);
  }
  return std::unique_ptr<Template>(new Template(std::move(name), std::move(body)));
}

Result<Text> Template::render(const Dict& context, const Limits& limits, const std::tm& now,
                              Usage* used) const {
  Interpreter interpreter(context, limits, now);
  struct Report {
    Interpreter& interpreter;
    Usage* used;
    ~Report() {
      if (used != nullptr) *used = interpreter.used();
    }
  } report{interpreter, used};
  try {
    return interpreter.run(body_->statements);
  } catch (const Failure& failure) {
    if (failure.code == ErrorCode::kInvalid) return Error{failure.code, failure.message};
    Position at = interpreter.position();
    return make_error(failure.code, "{}, line {}, column {}: {}", name_, at.line, at.column,
                      failure.message);
  }
}

Result<Text> Template::render(const Dict& context) const {
  std::time_t seconds = std::time(nullptr);
  std::tm now{};
  localtime_r(&seconds, &now);
  return render(context, Limits{}, now);
}

}  // namespace vitrine::jinja
