// GBNF, choices, tool calls, and what is refused.
#include "grammar/test_support.h"

namespace vitrine::grammar {
namespace {

using namespace test;
using ::testing::HasSubstr;

TEST(Gbnf, DerivesWhatItSays) {
  Checker c(gbnf(R"(
    # a comment
    root  ::= greeting (", " name)* punct{1,3} |
              "\x41\u00e9" [^a-z\n]
    greeting ::= "hello" | "hi"
    name ::= [A-Z] [a-z]+
    punct ::= "!" | "?"
  )"));
  for (const char* yes : {"hello!", "hi, Bob?!", "hi, Bob, Eve!!!", "Aé0", "Aé€"})
    EXPECT_TRUE(c(yes)) << yes;
  for (const char* no : {"", "hello", "hi, bob!", "hi!!!!", "Aéx", "Aé", "hi,Bob!"})
    EXPECT_FALSE(c(no)) << no;
}

TEST(Gbnf, Recursion) {
  Checker c(gbnf("root ::= \"(\" root \")\" | [0-9]+ (\"+\" root)?"));
  EXPECT_TRUE(c("((12+(3)))"));
  EXPECT_FALSE(c("((12+(3))"));
  EXPECT_FALSE(c("()"));
  std::string deep(5000, '(');
  EXPECT_TRUE(c(deep + "7" + std::string(5000, ')')));
  EXPECT_FALSE(c(deep + "7" + std::string(4999, ')')));
}

TEST(Gbnf, RightRecursionNeedsNoStack) {
  Checker c(
      gbnf("root ::= item\nitem ::= [a-z] [a-z] [a-z] [0-9] tail\ntail ::= \",\" item | \"\""));
  std::string list = "abc1";
  for (int i = 0; i < 20000; ++i) list += ",xyz2";
  EXPECT_TRUE(c(list));
  EXPECT_FALSE(c(list + ","));
}

TEST(Gbnf, LongRepetitionsAreCounted) {
  Checker c(gbnf("root ::= (\"ab\" | \"c\"){300,1000} \"!\""));
  auto text = [](int n) {
    std::string out;
    for (int i = 0; i < n; ++i) out += i % 3 ? "ab" : "c";
    return out + "!";
  };
  EXPECT_FALSE(c(text(299)));
  EXPECT_TRUE(c(text(300)));
  EXPECT_TRUE(c(text(1000)));
  EXPECT_FALSE(c(text(1001)));
}

TEST(Gbnf, RefusesByName) {
  EXPECT_THAT(refusal(gbnf("start ::= \"a\"")), HasSubstr("root"));
  EXPECT_THAT(refusal(gbnf("root ::= nowhere")), HasSubstr("nowhere"));
  EXPECT_THAT(refusal(gbnf("root ::= \"a\"\nroot ::= \"b\"")), HasSubstr("twice"));
  EXPECT_THAT(refusal(gbnf("root ::= root \"a\" | \"b\"")), HasSubstr("left-recursive"));
  EXPECT_THAT(refusal(gbnf("root ::= a\na ::= b? c\nb ::= \"x\"\nc ::= a \"y\" | \"z\"")),
              HasSubstr("left-recursive"));
  EXPECT_THAT(refusal(gbnf("root ::= \"a\" root")), HasSubstr("no text"));
  EXPECT_THAT(refusal(gbnf("root ::= \"a")), HasSubstr("line 1"));
  EXPECT_THAT(refusal(gbnf("root ::= [b-a]")), HasSubstr("upwards"));
  EXPECT_THAT(refusal(gbnf("root ::= \"a\"{3,2}")), HasSubstr("{m,n}"));
  EXPECT_THAT(refusal(gbnf("root ::= (\"a\"?){1,100000}")), HasSubstr("empty"));
  EXPECT_THAT(refusal(gbnf("root ::= " + std::string(60000, '('))), HasSubstr("nested"));
  EXPECT_THAT(refusal(gbnf("root ::= \"a\"" + std::string(60000, '*'))), HasSubstr("quantifiers"));
  EXPECT_THAT(refusal(gbnf("root ::= ((([a-z]{200}){200}){200}){200}")), HasSubstr("too large"));
  EXPECT_THAT(refusal(gbnf(std::string(2 << 20, 'a'))), HasSubstr("bytes"));
  EXPECT_THAT(refusal(gbnf("root ::= \"\xff\"")), HasSubstr("UTF-8"));
}

TEST(Choice, IsOneOfThem) {
  Checker c({.kind = Kind::kChoice, .choices = {"yes", "yes, please", "no"}});
  EXPECT_TRUE(c("yes") && c("yes, please") && c("no"));
  EXPECT_FALSE(c("yes,") || c("") || c("nope"));
  EXPECT_THAT(refusal({.kind = Kind::kChoice}), HasSubstr("choice"));
  EXPECT_THAT(refusal({.kind = Kind::kChoice, .choices = {""}}), HasSubstr("choice"));
}

ToolCallSpec hermes(bool lazy, std::uint64_t most) {
  ToolCallSpec t;
  t.alternatives.push_back({R"({"name": "add", "arguments": )",
                            parse(R"({"type":"object","properties":{"x":{"type":"integer"}},
                                      "required":["x"],"additionalProperties":false})"),
                            "}"});
  t.alternatives.push_back({R"({"name": "now", "arguments": )",
                            parse(R"({"type":"object","additionalProperties":false})"), "}"});
  t.begin = "<tool_call>\n", t.end = "\n</tool_call>";
  t.separator = t.end + "\n" + t.begin;
  t.max_calls = most;
  t.lazy = lazy;
  t.trigger = "<tool_call>";
  return t;
}

TEST(ToolCalls, AreTextAroundJson) {
  Checker one({.kind = Kind::kToolCalls, .tools = hermes(false, 1)});
  const std::string add =
      "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"x\":5}}\n</tool_call>";
  const std::string now = "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";
  EXPECT_TRUE(one(add) && one(now));
  EXPECT_FALSE(one(add + "\n" + now) || one("text " + add) || one(""));
  EXPECT_FALSE(one("<tool_call>\n{\"name\": \"now\", \"arguments\": {\"x\":5}}\n</tool_call>"));
  Checker three({.kind = Kind::kToolCalls, .tools = hermes(false, 3)});
  EXPECT_TRUE(three(add) && three(add + "\n" + now + "\n" + add));
  EXPECT_FALSE(three(add + "\n" + now + "\n" + add + "\n" + add));
}

TEST(ToolCalls, LazyOnesBeginWhereTheTextSaysSo) {
  Checker lazy({.kind = Kind::kToolCalls, .tools = hermes(true, 1)});
  const std::string now = "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";
  EXPECT_TRUE(lazy("") && lazy("Just text with <tool_ and <<tool_call, unfinished."));
  EXPECT_TRUE(lazy("Let me see.\n" + now) && lazy("<<tool_call" + now));
  EXPECT_FALSE(lazy(now + " and more") || lazy("a<tool_call>\nb") || lazy("a<tool_call>b"));
}

TEST(ToolCalls, WithoutABeginTheyAreToldByTheirFirstCharacter) {
  ConstraintSpec spec{.kind = Kind::kToolCalls, .tools = hermes(true, 2)};
  spec.tools.begin = spec.tools.end = spec.tools.trigger = "", spec.tools.separator = "; ";
  Checker lazy(spec);
  const std::string now = "{\"name\": \"now\", \"arguments\": {}}";
  EXPECT_TRUE(lazy("") && lazy("\n text {\"a\": 1}") && lazy(now) && lazy(now + "; " + now));
  EXPECT_FALSE(lazy("{}") || lazy(" {\"name\": \"now\"}") || lazy(now + " and more"));
}

TEST(Prelude, IsFreeAndThenTheTextIsNot) {
  auto checker = [](ConstraintSpec::Prelude prelude) {
    return Checker({.kind = Kind::kRegex, .text = "[0-9]+", .prelude = std::move(prelude)});
  };
  Checker may = checker({.begin = "<think>", .end = "</think>", .line_ends = true});
  EXPECT_TRUE(may("12") && may("<think>why</think>12") && may("<think></think>\n\n12"));
  EXPECT_TRUE(may("<think> <</think </thi</think>1"));
  EXPECT_FALSE(may("") || may("<think>12") || may("<think>a</think>") || may("x</think>1"));
  EXPECT_FALSE(may("<think>a</think>\n\n\n1") || may("\n1") || may("<think>a</think>1</think>2"));
  Checker must = checker({.begin = "<think>", .end = "</think>", .inside = true});
  EXPECT_TRUE(must("why</think>12") && must("</think>12"));
  EXPECT_FALSE(must("12") || must("</think>\n12"));
  Checker channels = checker({.begin = "[a]", .end = "[e]", .next = "[s][f]", .without = "[f]"});
  EXPECT_TRUE(channels("[f]12") && channels("[a]x[e][s][f]12"));
  EXPECT_FALSE(channels("12") || channels("[a]x[e]12") || channels("[a]x[e]y[e][s][f]12"));
  Checker none = checker({.without = "[f]"});
  EXPECT_TRUE(none("[f]1"));
  EXPECT_FALSE(none("1"));
  ConstraintSpec calls{.kind = Kind::kToolCalls, .tools = hermes(true, 1)};
  calls.prelude = {.begin = "<think>", .end = "</think>", .line_ends = true, .may_end = true};
  Checker lazy(calls);
  const std::string now = "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";
  EXPECT_TRUE(lazy("<think>a <tool_call> b") && lazy("<think>a <tool_call> b</think>\n\nc" + now));
  EXPECT_TRUE(lazy(now) && lazy("text") && lazy("<think>a</think>b"));
  EXPECT_FALSE(lazy("<think>a</think>b<tool_call>c") || lazy("a<tool_call>c"));
}

TEST(ToolCalls, SpecialTokensMayStandForTheirText) {
  std::vector<std::string> pieces = byte_pieces();
  pieces.emplace_back();  // 256: special
  ConstraintSpec spec{.kind = Kind::kToolCalls, .tools = hermes(true, 1)};
  spec.tools.begin = spec.tools.trigger = "[CALL]";
  spec.spelled_tokens = {{256, "[CALL]"}};
  ConstraintCompiler compiler(pieces);
  ConstraintMatcher matcher(*compiler.compile(spec));
  EXPECT_TRUE(matcher.mask()->test(256));
  ASSERT_TRUE(matcher.accept(256));
  EXPECT_FALSE(matcher.mask()->test(256));
  EXPECT_FALSE(matcher.may_end());
  EXPECT_TRUE(matcher.mask()->test('{'));
  EXPECT_FALSE(matcher.mask()->test('a'));
}

TEST(ToolCalls, SpecialTokensAreNoPartOfArguments) {
  std::vector<std::string> pieces = byte_pieces();
  pieces.emplace_back();
  ConstraintSpec spec{.kind = Kind::kToolCalls};
  spec.tools.alternatives = {{"f", parse(R"({"type":"string"})"), "!"}};
  spec.tools.begin = spec.tools.separator = "[CALL]", spec.tools.max_calls = 2;
  spec.spelled_tokens = {{256, "[CALL]"}};
  ConstraintCompiler compiler(pieces);
  ConstraintMatcher matcher(*compiler.compile(spec));
  ASSERT_TRUE(matcher.accept(256) && matcher.accept_text("f\"a"));
  EXPECT_FALSE(matcher.mask()->test(256) || matcher.accept(256));
  ASSERT_TRUE(matcher.accept_text("[CALL]\"!"));
  EXPECT_TRUE(matcher.mask()->test(256) && matcher.accept(256));
}

TEST(Compiler, KeepsWhatItCompiled) {
  ConstraintCompiler compiler(byte_pieces());
  auto a = compiler.compile(regex("a+")), b = compiler.compile(regex("a+"));
  EXPECT_EQ(a->get(), b->get());
  EXPECT_NE(a->get(), compiler.compile(regex("b+"))->get());
}

}  // namespace
}  // namespace vitrine::grammar
