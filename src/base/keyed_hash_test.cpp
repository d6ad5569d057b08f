#include "base/keyed_hash.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "base/outside_map.h"

namespace vitrine {
namespace {

// The vectors of the paper: key 00 01 .. 0f, text 00 01 .. 0e.
TEST(KeyedHash, IsSipHash) {
  HashSecret key{0x0706050403020100, 0x0f0e0d0c0b0a0908};
  unsigned char text[15];
  for (unsigned char i = 0; i < 15; ++i) text[i] = i;
  SipHash<2, 4> narrow(key);
  narrow.add(text, sizeof text);
  EXPECT_EQ(narrow.finish(), 0xa129ca6149be45e5u);
  SipHash<2, 4, true> wide(key);
  wide.add(text, sizeof text);
  EXPECT_EQ(wide.finish(), 0x11a8b03399e99354u);
}

TEST(KeyedHash, TextIsFoundByAnyKindOfString) {
  OutsideMap<std::string, int> map;
  map["abc"] = 5;
  EXPECT_EQ(map.find(std::string_view("abc"))->second, 5);
  OutsideSet<std::uint64_t> set{1, 2, 3};
  EXPECT_TRUE(set.contains(2));
}

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (char c : text) hash = (static_cast<unsigned char>(c) ^ hash) * 0x100000001b3;
  return hash;
}

// std::hash of an object is made of the hashes of its names, so it tells which hash Boost.JSON uses:
// with its own one these two names are the same.
TEST(KeyedHash, NamesOfJsonObjectsAreHashedWithTheSecret) {
  constexpr std::string_view kA = "8yn0iYCKYHlIj4-BwPqk", kB = "GReLUrM4wMqfg9yzV3KQ";
  ASSERT_EQ(fnv1a(kA), fnv1a(kB));
  std::hash<json::object> hash;
  EXPECT_NE(hash(json::object{{kA, 1}}), hash(json::object{{kB, 1}}));
}

}  // namespace
}  // namespace vitrine
