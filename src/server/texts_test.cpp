// Which recorded requests are kept, and which are evicted when there is no room.
#include "server/texts.h"

#include <gtest/gtest.h>

#include "server/http/http.h"
#include "server/request/call.h"

namespace vitrine {
namespace {

using Ids = std::shared_ptr<const std::vector<std::int32_t>>;

Ids prompt_of(std::size_t tokens) {
  return std::make_shared<const std::vector<std::int32_t>>(tokens, 5);
}

class TextsRoomTest : public ::testing::Test {
 protected:
  std::uint64_t begin(const std::string& tenant, const Ids& prompt,
                      const std::shared_ptr<const Call>& call) {
    Text text;
    text.id = ++last;
    text.label = "r" + std::to_string(last), text.tenant = tenant;
    text.prompt = prompt, text.call = call;
    texts.begin(std::move(text))->add({.token = 7}, SaidKind::kOutput);
    return last;
  }
  std::uint64_t begin(const std::string& tenant, std::size_t tokens) {
    return begin(tenant, prompt_of(tokens), std::make_shared<const Call>());
  }
  static HttpRequest key(const std::string& tenant) {
    HttpRequest http;
    http.tenant = tenant;
    http.rights.is_operator = tenant.empty();
    return http;
  }
  void forget_all() {
    for (std::uint64_t id = 1; id <= last; ++id) texts.forget(std::to_string(id), key(""));
  }

  Texts texts;
  std::uint64_t last = 0;
};

TEST_F(TextsRoomTest, NobodysAreCrowdedOutByAnothers) {
  constexpr std::size_t kMost = 128 << 10;
  texts.configure(RecordMode::kAll, kMost);
  std::vector<std::uint64_t> anns;
  for (int i = 0; i < 4; ++i) anns.push_back(begin("ann", 100));
  std::uint64_t bobs = 0;
  for (int i = 0; i < 200; ++i) {
    bobs = begin("bob", 1000);
    EXPECT_LE(texts.bytes(), kMost);
  }
  for (const std::uint64_t id : anns) EXPECT_TRUE(texts.has(id));
  EXPECT_TRUE(texts.has(bobs)) << "of those that go the oldest";
  EXPECT_FALSE(texts.has(anns.back() + 1));
  // What is larger than all the room is not kept, and takes only its own with it.
  EXPECT_FALSE(texts.has(begin("bob", kMost)));
  for (const std::uint64_t id : anns) EXPECT_TRUE(texts.has(id));
  forget_all();
  EXPECT_EQ(texts.size(), 0u);
  EXPECT_EQ(texts.bytes(), 0u);
}

TEST_F(TextsRoomTest, WhatChoicesShareCountsOnce) {
  constexpr std::size_t kTokens = 10000, kPromptBytes = kTokens * sizeof(std::int32_t);
  const Ids prompt = prompt_of(kTokens);
  const auto call = std::make_shared<const Call>();
  for (int i = 0; i < 16; ++i) begin("ann", prompt, call);
  EXPECT_GT(texts.bytes(), kPromptBytes);
  EXPECT_LT(texts.bytes(), 2 * kPromptBytes);
  // As long as one of them is there, it is too.
  for (int i = 1; i < 16; ++i) texts.forget(std::to_string(i), key(""));
  EXPECT_EQ(texts.size(), 1u);
  EXPECT_GT(texts.bytes(), kPromptBytes);
  forget_all();
  EXPECT_EQ(texts.bytes(), 0u);
}

TEST_F(TextsRoomTest, OnlyTheChoiceThatIsAskedForIsCopied) {
  const Ids prompt = prompt_of(3);
  const auto call = std::make_shared<const Call>();
  for (int i = 0; i < 3; ++i) {
    Text text;
    text.id = ++last, text.index = i;
    text.label = "many", text.tenant = "ann";
    text.prompt = prompt, text.call = call;
    texts.begin(std::move(text));
  }
  const auto found = texts.find("many", key("ann"));
  ASSERT_EQ(found.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(found[i].index, i);
    EXPECT_EQ(texts.get(found[i].id)->index, i);
  }
  EXPECT_TRUE(texts.find("many", key("bob")).empty());
  EXPECT_TRUE(texts.find("2", key("ann")).empty()) << "numbers are an operator's";
  ASSERT_EQ(texts.find("2", key("")).size(), 1u);
  for (const char* name : {"02", "+2", "2 ", "", "99999999999999999999999"})
    EXPECT_TRUE(texts.find(name, key("")).empty()) << name;
}

// Others record meanwhile: what is looked at is a copy. (With the lock held this would wait for ever.)
TEST_F(TextsRoomTest, WhoLooksHoldsNobodyUp) {
  for (int i = 0; i < 3; ++i) begin("ann", 10);
  begin("bob", 10);
  std::vector<std::uint64_t> seen;
  texts.visit(key("ann"), [&](const Text& text) {
    seen.push_back(text.id);
    texts.forget("3", key(""));
    begin("ann", 10);
  });
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{1, 2}));
}

}  // namespace
}  // namespace vitrine
