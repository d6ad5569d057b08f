#include "server/request/json_fields.h"

#include <gtest/gtest.h>

#include <functional>

namespace vitrine {
namespace {

// What reading `text` with `read` complains about; "" when it does not.
std::string complaint(const std::string& text, const std::function<void(JsonFields&)>& read) {
  json::value body;
  if (auto error = parse_body(text, body)) return error->message;
  JsonFields fields(body.get_object());
  read(fields);
  auto error = fields.close();
  if (!error) return "";
  EXPECT_EQ(error->status, 400);
  EXPECT_EQ(error->type, "invalid_request_error");
  return error->message;
}

TEST(JsonFields, WholeNumbersOnly) {
  auto read = [](JsonFields& f) { f.integer("n", 1, 128); };
  for (const char* good : {"1", "128", "5.0", "1e2", "null"})
    EXPECT_EQ(complaint(fmt::format(R"({{"n":{}}})", good), read), "") << good;
  const std::pair<const char*, const char*> bad[] = {{"0", "0"},
                                                     {"129", "129"},
                                                     {"-1", "-1"},
                                                     {"0.5", "0.5"},
                                                     {"-2147483648", "-2147483648"},
                                                     {"9223372036854775808", "9223372036854775808"},
                                                     {"1e308", "1e+308"},
                                                     {"true", "true"},
                                                     {"\"1\"", "the string \"1\""},
                                                     {"[]", "an empty list"},
                                                     {"[1]", "a list"},
                                                     {"{}", "an object"}};
  for (auto [value, shown] : bad)
    EXPECT_EQ(complaint(fmt::format(R"({{"n":{}}})", value), read),
              fmt::format("n: found {}, allowed whole numbers from 1 to 128", shown));
}

TEST(JsonFields, ClampedTakesAnythingLarge) {
  auto value = [](const char* text) {
    json::value body;
    EXPECT_FALSE(parse_body(fmt::format(R"({{"n":{}}})", text), body));
    JsonFields fields(body.get_object());
    auto n = fields.clamped("n", 0, 100);
    return fields.error() ? std::optional<std::int64_t>(-1) : n;
  };
  EXPECT_EQ(value("7"), 7);
  EXPECT_EQ(value("1000"), 100);
  EXPECT_EQ(value("9223372036854775808"), 100);
  EXPECT_EQ(value("1e300"), 100);
  EXPECT_EQ(value("null"), std::nullopt);
  for (const char* bad : {"-1", "-1e300", "1e400", "0.5", "\"1\"", "true", "[]", "{}"})
    EXPECT_EQ(value(bad), -1) << bad;
}

TEST(JsonFields, NumbersAreFinite) {
  auto read = [](JsonFields& f) { f.number("x"); };
  for (const char* good : {"1", "-0", "1e-400", "0.5", "18446744073709551615"})
    EXPECT_EQ(complaint(fmt::format(R"({{"x":{}}})", good), read), "") << good;
  EXPECT_EQ(complaint(R"({"x":1e400})", read), "x: found inf, allowed finite numbers");
  EXPECT_EQ(complaint(R"({"x":"1"})", read), "x: found the string \"1\", allowed finite numbers");
  EXPECT_EQ(complaint(R"({"x":true})", read), "x: found true, allowed finite numbers");
}

TEST(JsonFields, OtherTypes) {
  auto flag = [](JsonFields& f) { f.boolean("x"); };
  EXPECT_EQ(complaint(R"({"x":1})", flag), "x: found 1, allowed true or false");
  auto text = [](JsonFields& f) { f.text("x", 4); };
  EXPECT_EQ(complaint(R"({"x":"abcd"})", text), "");
  EXPECT_EQ(complaint(R"({"x":"abcde"})", text), "x: found a string of 5 bytes, allowed up to 4");
  EXPECT_EQ(complaint(R"({"x":[1]})", text), "x: found a list, allowed a string");
  auto list = [](JsonFields& f) { f.texts("x", 2); };
  EXPECT_EQ(complaint(R"({"x":["a","b"]})", list), "");
  EXPECT_EQ(complaint(R"({"x":["a","b","c"]})", list), "x: found a list of 3, allowed up to 2");
  EXPECT_EQ(complaint(R"({"x":["a",1]})", list), "x: found 1, allowed a list of strings");
  auto ids = [](JsonFields& f) { f.ids("x", 10, 100); };
  EXPECT_EQ(complaint(R"({"x":[0,99,5.0]})", ids), "");
  EXPECT_EQ(complaint(R"({"x":[0,100]})", ids), "x[1]: found 100, allowed token ids from 0 to 99");
  EXPECT_EQ(complaint(R"({"x":[-1]})", ids), "x[0]: found -1, allowed token ids from 0 to 99");
  auto seed = [](JsonFields& f) { f.bits("x"); };
  for (const char* good : {"-1", "0", "18446744073709551615", "3.0"})
    EXPECT_EQ(complaint(fmt::format(R"({{"x":{}}})", good), seed), "");
  EXPECT_EQ(complaint(R"({"x":1e30})", seed), "x: found 1e+30, allowed whole numbers of 64 bits");
}

TEST(JsonFields, UnknownNamesAreRefusedWithAGuess) {
  auto read = [](JsonFields& f) {
    f.integer("max_tokens", 0, 10);
    f.number("temperature");
    f.ignore({"user"});
  };
  EXPECT_EQ(complaint(R"({"max_token":3})", read),
            "max_token: unknown field; did you mean 'max_tokens'?");
  EXPECT_EQ(complaint(R"({"temprature":3})", read),
            "temprature: unknown field; did you mean 'temperature'?");
  EXPECT_EQ(complaint(R"({"zebra":3})", read), "zebra: unknown field");
  EXPECT_EQ(complaint(R"({"user":[1,{}]})", read), "");
  std::string shown = complaint(fmt::format(R"({{"{}":3}})", std::string(100000, 'x')), read);
  EXPECT_LT(shown.size(), 100);
}

TEST(JsonFields, WhatCannotBeHonouredIsRefusedUnlessEmpty) {
  auto read = [](JsonFields& f) { f.refuse({"tools"}); };
  for (const char* fine : {"null", "[]", "{}", "\"\"", "false"})
    EXPECT_EQ(complaint(fmt::format(R"({{"tools":{}}})", fine), read), "") << fine;
  EXPECT_EQ(complaint(R"({"tools":[{}]})", read),
            "tools: found a list; this server does not support it; leave it out");
}

TEST(JsonFields, TheFirstErrorSticksAndPathsAreWhole) {
  json::value body = json::parse(R"({"a":"x","b":"y"})");
  JsonFields fields(body.get_object(), "messages[3]");
  fields.integer("a", 0, 1);
  fields.integer("b", 0, 1);
  ASSERT_TRUE(fields.error());
  EXPECT_EQ(fields.error()->param, "messages[3].a");
  EXPECT_EQ(fields.error()->message,
            "messages[3].a: found the string \"x\", allowed whole numbers from 0 to 1");
}

TEST(JsonFields, BodiesThatAreNotObjects) {
  json::value out;
  for (const char* bad :
       {"", " ", "{", "[1", "nul", "{\"a\":}", "{\"a\":1,}", "{\"a\":1}x", "{'a':1}", "\"\\ud800\"",
        "{\"a\":NaN}", "{\"a\":Infinity}", "\xff\xfe", "{\"\xff\":1}"}) {
    auto error = parse_body(bad, out);
    ASSERT_TRUE(error) << bad;
    EXPECT_EQ(error->code, "invalid_json") << bad;
  }
  EXPECT_EQ(parse_body("[]", out)->message, "the body: found an empty list, allowed an object");
  EXPECT_EQ(parse_body("5", out)->message, "the body: found 5, allowed an object");
  for (std::size_t depth : {100, 100000}) {
    std::string deep = std::string(depth, '[') + std::string(depth, ']');
    EXPECT_TRUE(parse_body(deep, out));
  }
  std::string digits = "{\"a\":" + std::string(1000000, '9') + "}";
  parse_body(digits, out);  // must come back
}

TEST(JsonFields, LongTextIsShownShort) {
  EXPECT_EQ(describe(json::value(std::string(50, 'a'))),
            "the string \"" + std::string(40, 'a') + "...\"");
  // Not cut inside a character.
  std::string text = describe(json::value(std::string(39, 'a') + "日本"));
  EXPECT_EQ(text, "the string \"" + std::string(39, 'a') + "...\"");
}

}  // namespace
}  // namespace vitrine
