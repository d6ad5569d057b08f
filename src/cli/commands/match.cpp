// vitrine match: whether texts are what a constraint asks for, without a model.
#include <iostream>

#include "cli/command.h"
#include "cli/generation_flags.h"
#include "cli/output.h"

namespace vitrine {
namespace {

struct Flags {
  ConstraintFlags constraint;
  bool any_order = false;
};

Result<int> match(const Flags& f) {
  VT_TRY(auto spec, f.constraint.spec());
  if (!spec)
    return make_error(ErrorCode::kInvalid, "a constraint is needed, such as --json-schema");
  spec->any_order = f.any_order;
  // Every byte is a token: any text can be told.
  std::vector<std::string> bytes;
  for (int b = 0; b < 256; ++b) bytes.emplace_back(1, static_cast<char>(b));
  VT_TRY(auto constraint, ConstraintCompiler(std::move(bytes)).compile(*spec));
  std::string line;
  while (std::getline(std::cin, line)) {
    ConstraintMatcher matcher(constraint);
    const bool matches = matcher.accept_text(line) && matcher.may_end();
    fmt::print("{}\n", matches ? "yes" : "no");
  }
  return 0;
}

Action add(const CommandLine& line) {
  auto f = std::make_shared<Flags>();
  f->constraint.add(line);
  line.flag("--any-order", f->any_order,
            "members of JSON objects may come in any order, whole numbers as 1.0");
  return [f] { return match(*f); };
}

}  // namespace

extern const Command kCommand_match;
const Command kCommand_match{
    "match", 76, "tell for each line of the input whether it satisfies a constraint", add};

}  // namespace vitrine
