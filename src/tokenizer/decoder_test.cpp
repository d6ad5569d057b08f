#include "tokenizer/decoder.h"

#include <gtest/gtest.h>

#include "base/utf8.h"
#include "tokenizer/load_json.h"

namespace vitrine {
namespace {

TokenDecoder read(const std::string& json) {
  TokenDecoder decoder;
  json::value value = json::parse(json);
  Status status = read_decoder(value.as_object(), decoder);
  EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message);
  return decoder;
}

using Tokens = std::vector<std::string>;

// What each push gives, and at the end what finish gives.
Tokens stream(const TokenDecoder& decoder, const Tokens& tokens, bool continues = false) {
  DecodeStream stream(decoder, continues);
  Tokens out;
  for (const std::string& token : tokens) stream.push(token, false, out.emplace_back());
  stream.finish(out.emplace_back());
  for (const std::string& part : out) EXPECT_TRUE(utf8_valid(part));
  return out;
}

std::string decode(const std::string& json, const Tokens& tokens, bool continues = false) {
  std::string text;
  for (const std::string& part : stream(read(json), tokens, continues)) text += part;
  return text;
}

TEST(Decoder, ByteLevelJoinsBytesAndKeepsForeignText) {
  std::string json = R"({"type":"ByteLevel"})";
  EXPECT_EQ(decode(json, {"Ġthe", "Ã", "©"}), " theé");
  EXPECT_EQ(decode(json, {"a b", "日"}), "a b日");
  EXPECT_EQ(decode(json, {"Ã", "x"}), "\uFFFDx");
  EXPECT_EQ(stream(read(json), {"Ã", "©", "x"}), (Tokens{"", "é", "x", ""}));
}

TEST(Decoder, MetaspaceDropsTheFirstMark) {
  std::string json = R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"always"})";
  EXPECT_EQ(decode(json, {"▁a", "▁b", "c"}), "a bc");
  EXPECT_EQ(decode(json, {"▁a", "▁b"}, true), " a b");
  EXPECT_EQ(decode(R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"never"})", {"▁a"}),
            " a");
}

TEST(Decoder, WordPieceSpacesAndCleansUp) {
  std::string json = R"({"type":"WordPiece","prefix":"##","cleanup":true})";
  EXPECT_EQ(decode(json, {"do", "##n", "'", "t", ".", "it", "'s"}), "don ' t. it's");
  EXPECT_EQ(decode(json, {"a", "b"}, true), " a b");
  EXPECT_EQ(decode(R"({"type":"WordPiece","prefix":"##","cleanup":false})", {"a", "."}), "a .");
}

TEST(Decoder, ByteFallbackHoldsARunUntilItIsKnown) {
  std::string json = R"({"type":"ByteFallback"})";
  EXPECT_EQ(stream(read(json), {"<0xC3>", "<0xA9>", "x"}), (Tokens{"", "", "éx", ""}));
  EXPECT_EQ(decode(json, {"<0xC3>", "x"}), "\uFFFDx");
  EXPECT_EQ(decode(json, {"<0x41>", "<0xC3>"}), "\uFFFD\uFFFD");
  EXPECT_EQ(decode(json, {"<0xZZ>", "<0x-1>", "<0x100>", "<0x1>"}), "<0xZZ><0x-1><0x100><0x1>");
}

TEST(Decoder, StripsTokensOrTheWholeText) {
  EXPECT_EQ(decode(R"({"type":"Strip","content":"_","start":1,"stop":1})", {"__a_", "_b__"}),
            "_ab_");
  std::string fused = R"({"type":"Sequence","decoders":[{"type":"Fuse"},
                          {"type":"Strip","content":"_","start":2,"stop":2}]})";
  EXPECT_EQ(decode(fused, {"_", "__a_", "_b__", "_"}), "_a__b_");
  EXPECT_EQ(decode(fused, {"_", "_"}), "");
  EXPECT_EQ(decode(fused, {"_a"}, true), "_a");
  EXPECT_EQ(decode(fused, {"_a"}), "a");
}

TEST(Decoder, ReplacesAcrossTokensOnlyAfterAFuse) {
  std::string each = R"({"type":"Replace","pattern":{"String":"ab"},"content":"x"})";
  EXPECT_EQ(decode(each, {"a", "b", "ab"}), "abx");
  std::string fused = R"({"type":"Sequence","decoders":[{"type":"Fuse"},
                          {"type":"Replace","pattern":{"String":"aab"},"content":"ba"}]})";
  EXPECT_EQ(decode(fused, {"a", "a", "b", "aa", "a", "b", "a"}), "baabaa");
  EXPECT_EQ(stream(read(fused), {"xa", "a", "c"}), (Tokens{"x", "", "aac", ""}));
  std::string regex = R"({"type":"Sequence","decoders":[{"type":"Fuse"},
                          {"type":"Replace","pattern":{"Regex":"a+"},"content":"-"}]})";
  EXPECT_EQ(decode(regex, {"a", "ab"}), "-b");
}

TEST(Decoder, WordSuffixIsASpaceExceptAtTheEnd) {
  EXPECT_EQ(decode(R"({"type":"BPEDecoder","suffix":"</w>"})", {"a</w>", "b", "c</w>"}), "a bc");
  EXPECT_EQ(decode(R"({"type":"BPEDecoder","suffix":""})", {"a", "b"}), "ab");
}

TEST(Decoder, GivesWholeUtf8WhateverTheTokens) {
  TokenDecoder decoder;
  decoder.add(dec::RawBytes{});
  EXPECT_EQ(stream(decoder, {"<0xE6>", "<0x97>", "<0xA5>"}), (Tokens{"", "", "日", ""}));
  EXPECT_EQ(stream(decoder, {"\xE6\x97", "\xFF"}), (Tokens{"", "\uFFFD\uFFFD", ""}));
  EXPECT_EQ(stream(decoder, {"\xF0\x9F"}), (Tokens{"", "\uFFFD"}));
}

}  // namespace
}  // namespace vitrine
