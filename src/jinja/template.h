// Jinja templates as Hugging Face's chat templates use them: the language of Python's jinja2 with
// trim_blocks and lstrip_blocks, `break` and `continue`, `generation` blocks, and the functions
// raise_exception and strftime_now. Nothing of the host can be reached from a template, and every
// render has a budget.
#pragma once

#include <ctime>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "jinja/object.h"
#include "jinja/value.h"

namespace vitrine::jinja {

inline constexpr std::size_t kMaxSourceBytes = 4u << 20;

class TemplateBody;

// Immutable; may be rendered by many threads at once.
class Template {
 public:
  // kMalformed with line and column. `name` is in the errors.
  static Result<std::unique_ptr<Template>> parse(std::string_view source, std::string name);
  ~Template();

  // kInvalid: the template itself refused (raise_exception), with nothing but its message;
  // kTooLarge: over a limit; kUnsupported: anything else, such as an undefined value that is used.
  // `used`: what it took, also when it fails.
  Result<Text> render(const Dict& context, const Limits& limits, const std::tm& now,
                      Usage* used = nullptr) const;
  // Now, in local time.
  Result<Text> render(const Dict& context) const;

 private:
  Template(std::string name, std::unique_ptr<TemplateBody> body);
  std::string name_;
  std::unique_ptr<TemplateBody> body_;
};

}  // namespace vitrine::jinja
