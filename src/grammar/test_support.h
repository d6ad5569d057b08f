// For tests of this folder: constraints over single bytes, and texts against them.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "grammar/compiler.h"

namespace vitrine::grammar::test {

using Kind = ConstraintSpec::Kind;

inline std::vector<std::string> byte_pieces() {
  std::vector<std::string> out;
  for (int b = 0; b < 256; ++b) out.emplace_back(1, static_cast<char>(b));
  return out;
}

inline json::value parse(std::string_view text) {
  auto value = parse_json(text, "test");
  EXPECT_TRUE(value.ok()) << text;
  return std::move(*value);
}

inline ConstraintSpec gbnf(std::string text) {
  return {.kind = Kind::kGrammar, .text = std::move(text)};
}
inline ConstraintSpec regex(std::string text) {
  return {.kind = Kind::kRegex, .text = std::move(text)};
}
inline ConstraintSpec schema(std::string_view text, bool any_order = false) {
  return {.kind = Kind::kJsonSchema, .schema = parse(text), .any_order = any_order};
}

// Whether a machine accepts texts.
class Checker {
 public:
  explicit Checker(const ConstraintSpec& spec) {
    static ConstraintCompiler compiler(byte_pieces());
    auto made = compiler.compile(spec);
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
    if (made.ok()) constraint_ = *made;
  }
  bool operator()(std::string_view text) const {
    ConstraintMatcher matcher(constraint_);
    return matcher.accept_text(text) && matcher.may_end();
  }

 private:
  std::shared_ptr<const Constraint> constraint_;
};

inline std::string refusal(const ConstraintSpec& spec) {
  auto made = compile_machine(spec);
  EXPECT_FALSE(made.ok());
  return made.ok() ? "" : made.error().message;
}

}  // namespace vitrine::grammar::test
