#include "base/keyed_hash.h"

#include <gtest/gtest.h>

#include <cstring>

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

// Keys that std::hash cannot tell apart, in the manner of an attacker: 16 bytes, the second half of which
// undoes what the first did.
std::string colliding_key(std::uint64_t first) {
  constexpr std::uint64_t kMul = 0xc6a4a7935bd1e995, kSeed = 0xc70f6907, kTarget = 0x1234567;
  std::uint64_t inverse = kMul;
  for (int i = 0; i < 6; ++i) inverse *= 2 - kMul * inverse;
  auto mix = [](std::uint64_t x) { return x ^ (x >> 47); };
  std::uint64_t state = (kSeed ^ (16 * kMul)) ^ (mix(first * kMul) * kMul);
  state *= kMul;
  const std::uint64_t second = mix((kTarget * inverse ^ state) * inverse) * inverse;
  std::string out(16, '\0');
  std::memcpy(out.data(), &first, 8);
  std::memcpy(out.data() + 8, &second, 8);
  return out;
}

TEST(OutsideMap, KeysThatCollideElsewhereDoNotHere) {
  ASSERT_EQ(std::hash<std::string>{}(colliding_key(1)), std::hash<std::string>{}(colliding_key(7)));
  OutsideMap<std::string, int> map;
  for (std::uint64_t i = 0; i < 40'000; ++i) map[colliding_key(i * 0x9e3779b97f4a7c15)] = 1;
  EXPECT_EQ(map.size(), 40'000u);
  std::size_t most = 0;
  for (std::size_t b = 0; b < map.bucket_count(); ++b) most = std::max(most, map.bucket_size(b));
  EXPECT_LT(most, 20u);
}

}  // namespace
}  // namespace vitrine
