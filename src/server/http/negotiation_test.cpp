#include "server/http/negotiation.h"

#include <gtest/gtest.h>

namespace vitrine {
namespace {

HttpRequest with(std::string name, std::vector<std::string> values) {
  HttpRequest out;
  for (std::string& value : values) out.headers.emplace_back(name, std::move(value));
  return out;
}

TEST(Negotiation, Encodings) {
  auto accepts = [](std::vector<std::string> values, std::string_view coding = "br") {
    return accepts_encoding(with("accept-encoding", std::move(values)), coding);
  };
  EXPECT_FALSE(accepts({}));
  for (const char* yes :
       {"br", "BR", "gzip, deflate, br", "gzip,br", " br ", "br;q=1", "br; q=0.5", "br ;Q=0.001",
        "*", "gzip;q=0, *", "identity;q=0, *;q=0.5", "br;x=1;q=1", ", ,br,", "br;q=1.000"})
    EXPECT_TRUE(accepts({yes})) << yes;
  for (const char* no :
       {"", "gzip", "brr", "b r", "br;q=0", "br;q=0.0", "br; q=0.000", "br;q=", "br;q=x", "br;q=-1",
        "br;q=1e5", "*;q=0", "br;q=0, *", "*, br;q=0", "identity", "br=1", "\"br\"", ";q=1"})
    EXPECT_FALSE(accepts({no})) << no;
  EXPECT_TRUE(accepts({"gzip", "br"})) << "two lines are one list";
  EXPECT_TRUE(accepts({"gzip", "br"}, "gzip"));
  EXPECT_TRUE(accepts({"gzip;q=1.0, br;q=0"}, "gzip"));
}

TEST(Negotiation, EntityTags) {
  auto has = [](std::vector<std::string> values) {
    return has_etag(with("if-none-match", std::move(values)), "\"a,b\"");
  };
  EXPECT_FALSE(has({}));
  for (const char* yes : {"\"a,b\"", "W/\"a,b\"", "\"x\", \"a,b\"", "\"x\",W/\"a,b\",\"y\"", "*",
                          " * ", ", \"a,b\"", "\"x\"\t,\t\"a,b\""})
    EXPECT_TRUE(has({yes})) << yes;
  for (const char* no : {"", "a,b", "\"a,b", "\"a\"", "\"a,b \"", "w/\"a,b\"", "*, \"x\"",
                         "\"A,B\"", "\"x\" x \"a,b\"", "\"x", "W/", ","})
    EXPECT_FALSE(has({no})) << no;
  EXPECT_TRUE(has({"\"x\"", "\"a,b\""}));
}

TEST(Negotiation, LongLists) {
  std::string commas(64 << 10, ','), quotes(64 << 10, '"'), items;
  while (items.size() < (64u << 10)) items += "x;q=0.1,";
  EXPECT_FALSE(accepts_encoding(with("accept-encoding", {commas}), "br"));
  EXPECT_TRUE(accepts_encoding(with("accept-encoding", {items + "br"}), "br"));
  EXPECT_FALSE(has_etag(with("if-none-match", {commas}), "\"a\""));
  EXPECT_FALSE(has_etag(with("if-none-match", {quotes}), "\"a\""));
}

}  // namespace
}  // namespace vitrine
