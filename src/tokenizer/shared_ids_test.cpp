#include "tokenizer/shared_ids.h"

#include <gmock/gmock.h>

#include "tokenizer/test_support.h"

namespace vitrine {
namespace {

using ::testing::HasSubstr;

// A BPE tokenizer of these tokens; the last one is special if `special` says so.
std::unique_ptr<Tokenizer> tokenizer(const std::vector<std::string>& tokens, bool special = false) {
  std::string vocab, added;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    vocab += fmt::format(R"({}"{}":{})", i > 0 ? "," : "", tokens[i], i);
  if (special)
    added = fmt::format(R"({{"id":{},"content":"{}","special":true}})", tokens.size() - 1,
                        tokens.back());
  auto made = Tokenizer::from_json(
      fmt::format(
          R"({{"added_tokens":[{}],"pre_tokenizer":{{"type":"ByteLevel","add_prefix_space":false}},)"
          R"("decoder":{{"type":"ByteLevel"}},"model":{{"type":"BPE","vocab":{{{}}},"merges":[]}}}})",
          added, vocab),
      "");
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
  return std::move(*made);
}

std::string why(const Tokenizer& target, const Tokenizer& draft) {
  auto ids = shared_ids(target, "big", draft, "small");
  EXPECT_FALSE(ids.ok());
  return ids.ok() ? "" : ids.error().message;
}

TEST(SharedIds, AreThoseThatBothHave) {
  auto three = tokenizer({"a", "b", "c"}), five = tokenizer({"a", "b", "c", "d", "e"});
  EXPECT_EQ(*shared_ids(*three, "big", *three, "small"), 3);
  EXPECT_EQ(*shared_ids(*three, "big", *five, "small"), 3);
  EXPECT_EQ(*shared_ids(*five, "big", *three, "small"), 3);
}

TEST(SharedIds, OneThatDiffersIsNamed) {
  auto one = tokenizer({"a", "b", "c"}), other = tokenizer({"a", "x", "y"});
  const std::string bytes = why(*one, *other);
  for (const char* part : {"small cannot draft for big", "token 1", "\"x\" (normal)",
                           "\"b\" (normal)", "same bytes and kind"})
    EXPECT_THAT(bytes, HasSubstr(part));
  const std::string kind = why(*one, *tokenizer({"a", "b", "c"}, true));
  for (const char* part : {"token 2", "\"c\" (control)", "\"c\" (normal)"})
    EXPECT_THAT(kind, HasSubstr(part));
}

}  // namespace
}  // namespace vitrine
