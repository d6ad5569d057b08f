// Damaged grammars, patterns and schemas: each is refused, or works without a dead end.
#include <random>

#include "grammar/test_support.h"

namespace vitrine::grammar {
namespace {

using namespace test;

const std::vector<ConstraintSpec>& originals() {
  static const std::vector<ConstraintSpec> kAll{
      gbnf("root ::= \"a\" [b-z]{2,5} (x | y)*\nx ::= \"q\" root?\ny ::= . | \"\\x41\" [^\\n]+"),
      gbnf("root ::= (\"ab\" | c){300,900}\nc ::= [0-9]"),
      regex("^(a|b)*?c{2,7}[^x-z\\d]\\u0041(?:e|f)+$"),
      regex("\\w+@[a-z]+\\.(com|org)(/.*)?"),
      {.kind = Kind::kJsonSchema,
       .text = R"({"type":"object","properties":{"a":{"type":"integer","minimum":-3.5,
          "multipleOf":0.5},"b":{"$ref":"#/$defs/x"}},"required":["a"],"$defs":{"x":{"anyOf":[{"type":"array",
          "items":{"$ref":"#/$defs/x"},"maxItems":3},{"type":"string","maxLength":9},{"const":[1,{"k":null}]}]}},
          "patternProperties":{"^z":{"not":{"type":"null"}}},"minProperties":1})"},
      {.kind = Kind::kJsonSchema, .text = R"({"oneOf":[{"if":{"minimum":3},"then":{"maximum":9},
          "else":{"enum":[1,2,"x"]}},{"type":"string","format":"date"}],"propertyNames":{"maxLength":4},
          "additionalProperties":{"type":["null","boolean"]}})"},
  };
  return kAll;
}

std::string damaged(std::string text, std::mt19937& rng) {
  constexpr std::string_view kMarks = "(){}[]|*+?\\\"0123456789";
  for (unsigned n = 1 + rng() % 4; n > 0; --n) {
    if (text.empty()) text = "a";
    const std::size_t at = rng() % text.size();
    switch (rng() % 4) {
      case 0:
        text[at] = static_cast<char>(rng() % 256);
        break;
      case 1:
        text.erase(at, 1 + rng() % 5);
        break;
      case 2:
        text.insert(at, text.substr(rng() % text.size(), rng() % 20));
        break;
      default:
        text[at] = kMarks[rng() % kMarks.size()];
    }
  }
  return text;
}

TEST(Fuzz, DamagedConstraintsAreRefusedOrWork) {
  ConstraintCompiler compiler(byte_pieces());
  std::mt19937 rng(21);
  int compiled = 0;
  for (int i = 0; i < 600; ++i) {
    ConstraintSpec spec = originals()[rng() % originals().size()];
    const std::string text = spec.text = damaged(spec.text, rng);
    if (spec.kind == Kind::kJsonSchema) {
      auto parsed = parse_json(text, "schema");
      if (!parsed.ok()) continue;
      spec.schema = *parsed, spec.text = "", spec.any_order = rng() % 2 == 0;
    }
    auto constraint = compiler.compile(spec);
    if (!constraint.ok()) continue;
    ++compiled;
    ConstraintMatcher matcher(*constraint);
    for (int step = 0; step < 40; ++step) {
      auto mask = matcher.mask();
      ASSERT_TRUE(mask->any || matcher.may_end()) << text;
      if (!mask->any) break;
      auto id = static_cast<std::int32_t>(rng() % 256);
      while (!mask->test(id)) id = (id + 1) % 256;
      ASSERT_TRUE(matcher.accept(id)) << text;
    }
  }
  EXPECT_GT(compiled, 50);
}

}  // namespace
}  // namespace vitrine::grammar
