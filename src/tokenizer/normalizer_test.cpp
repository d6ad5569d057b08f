#include "tokenizer/normalizer.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/utf8.h"
#include "tokenizer/load_json.h"

namespace vitrine {
namespace {

std::string normalize(const std::string& json, std::string_view text) {
  Normalizer normalizer;
  json::value value = json::parse(json);
  Status read = read_normalizer(value.as_object(), normalizer);
  EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.error().message);
  return normalizer.apply(text);
}

TEST(Normalizer, UnicodeForms) {
  EXPECT_EQ(to_unicode_form("e\u0301", UnicodeForm::kNfc), "\u00E9");
  EXPECT_EQ(to_unicode_form("\u00E9", UnicodeForm::kNfd), "e\u0301");
  EXPECT_EQ(to_unicode_form("\uFB01 \u00BD \u2460", UnicodeForm::kNfkc), "fi 1\u20442 1");
  EXPECT_EQ(to_unicode_form("\u212B", UnicodeForm::kNfkd), "A\u030A");
  EXPECT_EQ(to_unicode_form("\uFB01", UnicodeForm::kNfc), "\uFB01");
  EXPECT_EQ(to_unicode_form("\uD55C", UnicodeForm::kNfd), "\u1112\u1161\u11AB");
  EXPECT_EQ(to_unicode_form("\u1112\u1161\u11AB", UnicodeForm::kNfc), "\uD55C");
  EXPECT_EQ(to_unicode_form("\uE000\U000F0000\u0378", UnicodeForm::kNfkc),
            "\uE000\U000F0000\u0378");
}

TEST(Normalizer, OrdersMarksAndKeepsTheOrderOfEquals) {
  // Class 230 before 220: swapped. Two of class 230: kept.
  EXPECT_EQ(to_unicode_form("x\u0301\u0316", UnicodeForm::kNfd), "x\u0316\u0301");
  EXPECT_EQ(to_unicode_form("x\u0308\u0301", UnicodeForm::kNfd), "x\u0308\u0301");
  std::string many;
  for (int i = 0; i < 200'000; ++i) many += "\u0301\u0316";
  EXPECT_EQ(to_unicode_form(many, UnicodeForm::kNfd).substr(0, 4), "\u0316\u0316");
}

TEST(Normalizer, Steps) {
  EXPECT_EQ(normalize(R"({"type":"Lowercase"})", "ÀÉİS"), "àéi\u0307s");
  EXPECT_EQ(normalize(R"({"type":"Prepend","prepend":"_"})", "a"), "_a");
  EXPECT_EQ(normalize(R"({"type":"Prepend","prepend":"_"})", ""), "");
  EXPECT_EQ(normalize(R"({"type":"Replace","pattern":{"String":"aa"},"content":"b"})", "aaaaa"),
            "bba");
  EXPECT_EQ(normalize(R"({"type":"Replace","pattern":{"Regex":" {2,}"},"content":"_"})", "a   b c"),
            "a_b c");
  EXPECT_EQ(normalize(R"({"type":"Replace","pattern":{"String":""},"content":"b"})", "a"), "a");
  EXPECT_EQ(normalize(R"({"type":"Strip"})", "\u3000 a b\n"), "a b");
  EXPECT_EQ(normalize(R"({"type":"Strip","strip_left":false,"strip_right":true})", " a "), " a");
  EXPECT_EQ(normalize(R"({"type":"StripAccents"})", "e\u0301"), "e");
  EXPECT_EQ(normalize(R"({"type":"Nmt"})", "a\tb\u200Bc\u0001"), "a b c");
  EXPECT_EQ(normalize(R"({"type":"ByteLevel"})", "é "), "Ã©Ġ");
  EXPECT_EQ(normalize(R"({"type":"Sequence","normalizers":[{"type":"NFD"},{"type":"StripAccents"},
                          {"type":"Lowercase"}]})",
                      "Éa"),
            "ea");
}

TEST(Normalizer, Bert) {
  EXPECT_EQ(normalize(R"({"type":"BertNormalizer"})", "É\u4E2D\u0001x\tA\u200D"), "e 中 x a");
  EXPECT_EQ(normalize(R"({"type":"BertNormalizer","lowercase":false})", "Éa"), "Éa");
  EXPECT_EQ(normalize(R"({"type":"BertNormalizer","lowercase":false,"strip_accents":true})", "Éa"),
            "Ea");
  EXPECT_EQ(normalize(R"({"type":"BertNormalizer","handle_chinese_chars":false})", "\u4E2D"), "中");
}

TEST(Normalizer, SpaceMarks) {
  auto mark = [](bool prefix, bool collapse, std::string_view text) {
    Normalizer normalizer;
    normalizer.add(norm::SpaceMarks{prefix, collapse});
    return normalizer.apply(text);
  };
  EXPECT_EQ(mark(true, false, "a  b "), "▁a▁▁b▁");
  EXPECT_EQ(mark(true, true, "  a  b "), "▁a▁b");
  EXPECT_EQ(mark(false, true, "  a  b "), "a▁b");
  EXPECT_EQ(mark(false, false, "a b"), "a▁b");
}

// A double array for "a" -> "x" and "ab" -> "yz": units of offset << 10 | has value << 8 | label.
std::string tiny_charsmap() {
  std::vector<std::uint32_t> units(512, 0);
  auto node = [](std::uint32_t offset, bool value, std::uint32_t label) {
    return offset << 10 | static_cast<std::uint32_t>(value) << 8 | label;
  };
  std::uint32_t a = 256 ^ 'a';
  units[0] = node(256, false, 0);
  std::uint32_t children = 128;
  units[a] = node(a ^ children, true, 'a');
  units[children] = 0x80000000u | 0;
  std::uint32_t ab = children ^ 'b';
  units[ab] = node(ab ^ 8, true, 'b');
  units[8] = 0x80000000u | 2;
  std::string bytes(4 + units.size() * 4, '\0');
  auto size = static_cast<std::uint32_t>(units.size() * 4);
  std::memcpy(bytes.data(), &size, 4);
  std::memcpy(bytes.data() + 4, units.data(), size);
  return bytes + std::string("x\0yz\0", 5);
}

TEST(Charsmap, AppliesRules) {
  Charsmap map = std::move(Charsmap::parse(tiny_charsmap())).value();
  EXPECT_EQ(map.normalize("abac é"), "yzxc é");
  EXPECT_EQ(map.normalize_graphemes("abc"), "xbc");
  EXPECT_EQ(map.longest("abz")->length, 2u);
  EXPECT_EQ(map.shortest("abz")->length, 1u);
  EXPECT_FALSE(map.longest("z"));
}

TEST(Charsmap, SurvivesHostileBytes) {
  EXPECT_FALSE(Charsmap::parse("").ok());
  EXPECT_FALSE(Charsmap::parse("abc").ok());
  EXPECT_FALSE(Charsmap::parse(std::string("\xFF\xFF\xFF\x7F", 4)).ok());
  std::string good = tiny_charsmap();
  for (std::size_t cut = 4; cut < good.size(); cut += 61)
    if (auto map = Charsmap::parse(good.substr(0, cut)); map.ok()) map->normalize("abab");
  for (std::size_t i = 4; i < good.size(); i += 7)
    for (int flip : {1, 0x80, 0xFF}) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ flip);
      Charsmap map = std::move(Charsmap::parse(bad)).value();
      map.normalize("ab abc \xC3\xA9");
      map.normalize_graphemes("ab abc \xC3\xA9");
    }
}

TEST(Base64, Decodes) {
  EXPECT_EQ(decode_base64("aGVsbG8="), "hello");
  EXPECT_EQ(decode_base64(""), "");
  EXPECT_EQ(decode_base64("a"), std::nullopt);
  EXPECT_EQ(decode_base64("a==="), std::nullopt);
  EXPECT_EQ(decode_base64("a*b="), std::nullopt);
}

}  // namespace
}  // namespace vitrine
