#include "formats/meta.h"

#include <gtest/gtest.h>

#include <utility>

#include "formats/test_files.h"

namespace vitrine {
namespace {

Meta sample() {
  Meta meta;
  meta.add("bool", true);
  meta.add("int", std::int64_t{-3});
  meta.add("uint", std::uint64_t{3});
  meta.add("wide", ~std::uint64_t{0});
  meta.add("float", 2.5);
  meta.add("text", std::string_view("x"));
  MetaArray ints;
  ints.count = 2, ints.ints = {1, 2};
  meta.add("ints", ints);
  return meta;
}

TEST(Meta, AddsAKeyOnce) {
  Meta meta;
  EXPECT_TRUE(meta.add("k", true));
  EXPECT_FALSE(meta.add("k", false));
  EXPECT_TRUE(*meta.get_bool("k"));
  EXPECT_EQ(meta.find("other"), nullptr);
}

TEST(Meta, ReadsAndConverts) {
  Meta meta = sample();
  EXPECT_EQ(*meta.get_int("int"), -3);
  EXPECT_EQ(*meta.get_int("uint"), 3);
  EXPECT_EQ(*meta.get_float("int"), -3.0);
  EXPECT_EQ(*meta.get_float("wide"), 18446744073709551615.0);
  EXPECT_EQ(*meta.get_floats("ints"), (std::vector<float>{1, 2}));
}

TEST(Meta, NamesTheKey) {
  Meta meta = sample();
  VT_EXPECT_REFUSED(meta.get_int("gone"), ErrorCode::kNotFound, "'gone'");
  VT_EXPECT_REFUSED(meta.get_strings("gone"), ErrorCode::kNotFound, "'gone'");
  VT_EXPECT_REFUSED(meta.get_int("wide"), ErrorCode::kMalformed, "'wide'", "18446744073709551615");
  VT_EXPECT_REFUSED(meta.get_int("float"), ErrorCode::kMalformed, "'float'", "integer");
  VT_EXPECT_REFUSED(meta.get_int("bool"), ErrorCode::kMalformed, "'bool'");
  VT_EXPECT_REFUSED(meta.get_float("text"), ErrorCode::kMalformed, "'text'", "number");
  VT_EXPECT_REFUSED(meta.get_bool("int"), ErrorCode::kMalformed, "'int'", "bool");
  VT_EXPECT_REFUSED(meta.get_string("ints"), ErrorCode::kMalformed, "'ints'", "array of 2 int");
  VT_EXPECT_REFUSED(meta.get_strings("ints"), ErrorCode::kMalformed, "'ints'", "strings");
  VT_EXPECT_REFUSED(meta.get_bools("ints"), ErrorCode::kMalformed, "'ints'", "bools");
  VT_EXPECT_REFUSED(meta.get_ints("int"), ErrorCode::kMalformed, "'int'", "array");
}

TEST(Meta, DefaultsCoverAbsenceOnly) {
  Meta meta = sample();
  EXPECT_EQ(*meta.get_int("gone", 7), 7);
  EXPECT_EQ(*meta.get_float("gone", 0.5), 0.5);
  EXPECT_EQ(*meta.get_bool("gone", true), true);
  EXPECT_EQ(*meta.get_string("gone", "d"), "d");
  EXPECT_EQ(*meta.get_int("int", 7), -3);
  VT_EXPECT_REFUSED(meta.get_int("text", 7), ErrorCode::kMalformed, "'text'");
  VT_EXPECT_REFUSED(meta.get_string("int", "d"), ErrorCode::kMalformed, "'int'");
}

// A file that another process writes to after its lengths were checked.
TEST(Meta, ChecksTheLengthsItReadsAgain) {
  std::vector<std::byte> encoded(2 * 8 + 4);
  encoded[0] = std::byte{2}, encoded[10] = std::byte{2};
  MetaArray array;
  array.type = MetaType::kString, array.count = 2;
  array.data = encoded.data(), array.bytes = encoded.size();
  Meta meta;
  meta.add("texts", array);
  ASSERT_TRUE(meta.get_strings("texts").ok());
  EXPECT_EQ(meta.get_strings("texts")->at(1).size(), 2u);
  for (int at : {0, 1, 7, 10, 13, 17}) {
    auto before = std::exchange(encoded[static_cast<std::size_t>(at)], std::byte{0xff});
    VT_EXPECT_REFUSED(meta.get_strings("texts"), ErrorCode::kMalformed, "'texts'", "changed");
    encoded[static_cast<std::size_t>(at)] = before;
  }
}

}  // namespace
}  // namespace vitrine
