#include <chrono>

#include "grammar/test_support.h"

namespace vitrine::grammar {
namespace {

using namespace test;
using ::testing::HasSubstr;

struct Case {
  const char* schema;
  std::vector<const char*> yes, no;
};

// Any spelling of a valid value is accepted in any order, and nothing else.
TEST(Schema, AdmitsWhatItSays) {
  const Case cases[] = {
      {R"({"type":"integer","minimum":-5,"exclusiveMaximum":120})",
       {"-5", "0", "119", "7", "7.0"},
       {"-6", "120", "1.5", "\"7\"", "1e1", "007", "+1"}},
      {R"({"type":"number","minimum":0.5,"multipleOf":0.25})",
       {"0.5", "0.75", "10", "3.250"},
       {"0.25", "0.6", "-1"}},
      {R"({"type":["null","boolean"]})", {"null", "true", "false"}, {"0", "\"\"", "[]", "nul"}},
      {R"({"enum":["a",1,null,[1,{"x":2}],"q\"\n"]})",
       {"\"a\"", "1", "1.0", "null", R"([1,{"x":2}])", R"("q\"\n")"},
       {"\"b\"", "2", "[1]", R"([1,{"x":3}])", R"([1,{"x":2,"y":1}])"}},
      {R"({"type":"string","minLength":2,"maxLength":3})",
       {"\"ab\"", "\"éé€\"", R"("\u00e9\n\"")", R"("\ud83d\ude00a")"},
       {"\"a\"", "\"abcd\"", R"("\ud83d")", R"("\ude00ab")", "\"a\nb\"", "\"ab"}},
      {R"({"type":"string","pattern":"^[a-c]+$","maxLength":4})",
       {"\"abc\"", "\"c\""},
       {"\"\"", "\"abcab\"", "\"d\""}},
      {R"({"type":"string","pattern":"b"})",
       {"\"abc\"", "\"éb\\n\"", "\"\\tb\""},
       {"\"a\"", "\"\""}},
      {R"({"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":3})",
       {"[1]", "[1, 2,\n  3]"},
       {"[]", "[1,2,3,4]", "[\"a\"]", "[1,]", "[,1]"}},
      {R"({"type":"array","prefixItems":[{"const":1},{"const":2}],"items":false})",
       {"[]", "[1]", "[1,2]"},
       {"[2]", "[1,2,3]"}},
      {R"({"type":"array","items":{},"minItems":2})",
       {"[1,2]", "[[],{}]", "[1,2,3,4]"},
       {"[]", "[1]"}},
      {R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a"],
           "additionalProperties":false})",
       {R"({"a":1})", R"({"b":"x","a":1})", R"({"a":1,"b":"x"})"},
       {"{}", R"({"b":"x"})", R"({"a":1,"a":2})", R"({"a":1,"c":2})", R"({"a":"x"})"}},
      {R"({"properties":{"foo":{"type":"integer"}},"patternProperties":{"^f":{"minimum":5}},
           "additionalProperties":{"type":"boolean"}})",
       {R"({"foo":7})", R"({"fx":"s","y":true})", "3"},
       {R"({"foo":3})", R"({"foo":"s"})", R"({"fx":1})", R"({"y":1})"}},
      {R"({"type":"object","propertyNames":{"pattern":"^[a-z]$"},"maxProperties":2})",
       {"{}", R"({"a":1,"b":2})"},
       {R"({"ab":1})", R"({"a":1,"b":2,"c":3})"}},
      {R"({"anyOf":[{"type":"integer"},{"minimum":2}]})", {"1", "2.5", "\"x\""}, {"1.5"}},
      {R"({"oneOf":[{"type":"integer"},{"minimum":2}]})", {"1", "2.5"}, {"1.5", "3"}},
      {R"({"oneOf":[{"type":"object","properties":{"k":{"const":"a"},"v":{"type":"integer"}},"required":["k","v"]},
                   {"type":"object","properties":{"k":{"const":"b"},"v":{"type":"string"}},"required":["k","v"]}]})",
       {R"({"k":"a","v":1})", R"({"v":"x","k":"b"})"},
       {R"({"k":"a","v":"x"})", R"({"k":"c","v":1})"}},
      {R"({"allOf":[{"minimum":3},{"maximum":5},{"type":"integer"}]})",
       {"3", "5"},
       {"2", "6", "3.5"}},
      {R"({"not":{"type":["integer","string"]}})", {"1.5", "null", "[]"}, {"1", "2.0", "\"\""}},
      {R"({"if":{"type":"object","properties":{"t":{"const":1}},"required":["t"]},
           "then":{"required":["x"]},"else":{"required":["y"]}})",
       {R"({"t":1,"x":0})", R"({"y":0})", R"({"t":2,"y":0})", "5"},
       {R"({"t":1,"y":0})", R"({"x":0})"}},
      {R"({"dependentRequired":{"a":["b"]}})",
       {"{}", R"({"b":1})", R"({"a":1,"b":2})"},
       {R"({"a":1})"}},
      {R"({"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}},
           "additionalProperties":false}}})",
       {"{}", R"({"next":{"next":{}}})"},
       {R"({"next":1})", R"({"next":{"x":1}})"}},
      {R"({"type":"string","format":"date"})",
       {"\"2024-02-29\"", "\"1999-12-31\""},
       {"\"2023-02-29\"", "\"2024-13-01\"", "\"x\""}},
      {R"({"title":"t","description":"d","default":1,"examples":[1],"$comment":"c","readOnly":true,"deprecated":false,
           "x-vendor":{},"const":1})",
       {"1"},
       {"2"}},
      {R"({"type":"object","minProperties":1})", {R"({"a":1})"}, {"{}"}},
      {"true", {"1", "[{}]", R"({"a":[1.5e3,"x"]})"}, {"", "{", "tru", "[1 2]"}},
  };
  for (const Case& c : cases) {
    Checker check(schema(c.schema, true));
    for (const char* text : c.yes) EXPECT_TRUE(check(text)) << c.schema << " and " << text;
    for (const char* text : c.no) EXPECT_FALSE(check(text)) << c.schema << " and " << text;
  }
}

TEST(Schema, WritesInItsOwnOrder) {
  Checker c(schema(R"({"type":"object","properties":{"z":{"type":"integer"},"a":{"type":"integer"},
                       "m":{"type":"integer"}},"required":["m"]})"));
  EXPECT_TRUE(c(R"({"z":1,"a":2,"m":3})") && c(R"({"a": 2, "m": 3})") &&
              c(R"({"m":3,"other":null})"));
  EXPECT_FALSE(c(R"({"a":1,"z":2,"m":3})") || c(R"({"m":3,"a":2})") || c(R"({"other":1,"m":3})"));
  EXPECT_FALSE(c(R"({"z":1.0,"m":3})"));  // whole numbers are written as such
}

TEST(Schema, BlankSpaceIsBounded) {
  Checker c(schema("{}"));
  EXPECT_TRUE(c("[1, 2]") && c("{\n  \"a\": 1,\n  \"b\": [\n    1\n  ]\n}") && c("{ }"));
  EXPECT_FALSE(c(" 1") || c("1 ") || c("[  1]") || c("[\n\n1]") || c("[1 ,2]"));
}

TEST(Schema, NestingEndsBeforeParsersDo) {
  Checker c(schema("{}"));
  EXPECT_TRUE(c(std::string(64, '[') + std::string(64, ']')));
  EXPECT_FALSE(c(std::string(65, '[') + std::string(65, ']')));
}

TEST(Schema, NumbersAndStringsAreJson) {
  Checker c(schema("{}"));
  for (const char* yes :
       {"-0", "1e5", "1.5E-07", "12345678901234567890", R"("\u0041\/")", "\"\x7f\""})
    EXPECT_TRUE(c(yes)) << yes;
  for (const char* no : {"01", "1.", ".5", "-", "1e", "1e555", "\"\x01\"", "\"\xff\"",
                         "\"\xed\xa0\x80\"", R"("\x")", "'a'", "NaN"})
    EXPECT_FALSE(c(no)) << no;
}

TEST(Schema, RefusesByName) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"uniqueItems":true})", "uniqueItems"},
      {R"({"contains":{"type":"integer"}})", "contains"},
      {R"({"properties":{"a":{"frobnicate":1}}})", "frobnicate"},
      {R"({"$ref":"other.json"})", "$ref"},
      {R"({"$ref":"#/nowhere"})", "$ref"},
      {R"({"$ref":"#"})", "$ref"},
      {R"({"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"anyOf":[{"$ref":"#/$defs/a"}]}}})",
       "$ref"},
      {R"({"$dynamicRef":"#x"})", "$dynamicRef"},
      {R"({"properties":{"a":{"$id":"x"}}})", "$id"},
      {R"({"allOf":[{"properties":{"a":true}}],"unevaluatedProperties":false})",
       "unevaluatedProperties"},
      {R"({"format":"frobnicate"})", "format"},
      {R"j({"pattern":"(?=a)"})j", "pattern"},
      {R"({"not":{"items":{"type":"string"}}})", "items"},
      {R"({"maxItems":18446744073709551616})", "maxItems"},
      {R"({"minLength":-1})", "minLength"},
      {R"({"type":"strange"})", "type"},
      {R"({"properties":[]})", "properties"},
      {R"({"multipleOf":0})", "multipleOf"},
      {R"({"minProperties":5})", "minProperties"},
      {R"({"$schema":"http://json-schema.org/draft-03/schema#"})", "$schema"},
      {R"({"type":"integer","minimum":5,"maximum":4})", "no value"},
      {R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})", "no value"},
      {"5", "schema"},
  };
  for (auto [text, named] : cases) EXPECT_THAT(refusal(schema(text)), HasSubstr(named)) << text;
}

// Small texts that ask for large automata. The time is the point, but nothing here is timed: an
// unbounded compilation would not come back at all.
// An anchor is looked for in the whole document, for each reference to it.
TEST(Schema, SearchesForAnchorsCostSteps) {
  auto made = [](int references) {
    std::string text = R"({"x-long":[0)";
    for (int i = 0; i < 100'000; ++i) text += ",0";
    text += R"(],"$defs":{"a":{"$anchor":"a","type":"string"}},"properties":{"k":{"$ref":"#a"})";
    for (int i = 1; i < references; ++i)
      text += fmt::format(R"(,"k{}":{{"$ref":"#a","title":"{}"}})", i, i);
    return compile_machine(schema(text + "}}"));
  };
  EXPECT_TRUE(made(3).ok());
  auto many = made(1000);
  ASSERT_FALSE(many.ok());
  EXPECT_THAT(many.error().message, HasSubstr("too large"));
}

TEST(Schema, HostileOnesComeBack) {
  auto made = [](const std::string& text) { return compile_machine(schema(text)).ok(); };
  std::string chain = R"({"$ref":"#/$defs/d0","$defs":{)";
  for (int i = 0; i < 3000; ++i)
    chain +=
        fmt::format(R"("d{}":{{"allOf":[{{"$ref":"#/$defs/d{}"}},{{"$ref":"#/$defs/d{}"}}]}},)", i,
                    i + 1, i + 1);
  EXPECT_FALSE(made(chain + "\"d3000\":{}}}"));
  std::string product = R"({"allOf":[)";
  for (int i = 0; i < 40; ++i)
    product += fmt::format(R"({}{{"anyOf":[{{"required":["a{}"]}},{{"required":["b{}"]}}]}})",
                           i ? "," : "", i, i);
  EXPECT_FALSE(made(product + "]}"));
  std::string patterns = R"({"type":"string","allOf":[)";
  for (int i = 0; i < 30; ++i)
    patterns += fmt::format(R"({}{{"pattern":"a.{{{}}}b"}})", i ? "," : "", i + 5);
  EXPECT_FALSE(made(patterns + "]}"));
  std::string wide = R"({"type":"object","properties":{)";
  for (int i = 0; i < 2000; ++i)
    wide += fmt::format(R"({}"property{}":{{"type":"integer"}})", i ? "," : "", i);
  EXPECT_TRUE(made(wide + "}}"));
  EXPECT_TRUE(made(
      R"({"type":"array","maxItems":2000000000,"items":{"type":"string","maxLength":2000000000}})"));
  EXPECT_FALSE(made(R"({"type":"string","pattern":"^(a|b)*$","maxLength":1000000})"));
}

}  // namespace
}  // namespace vitrine::grammar
