#include "tokenizer/token_words.h"

#include <gmock/gmock.h>

#include "formats/model_file.h"

namespace vitrine {
namespace {

// In most vocabularies a word behind a space has fewer tokens than at the beginning of a text. Both are meant.
TEST(TokenWords, AWordIsMeantWhereverItStands) {
  auto file = ModelFile::open(std::string(VT_FIXTURES) + "/../../models/demo.gguf");
  ASSERT_TRUE(file.ok()) << file.error().message;
  const auto tokenizer = Tokenizer::load(**file).value();
  const std::string words[] = {"Oliver", " fox"};
  const auto tokens = tokens_of_words(*tokenizer, words).value();
  const auto of = [&](const char* text) { return tokenizer->encode(text, {.add_special = false}); };
  EXPECT_NE(of("Oliver").size(), of(" Oliver").size());
  EXPECT_THAT(tokens, testing::IsSupersetOf({of("Oliver"), of(" Oliver"), of("fox"), of(" fox")}));
}

}  // namespace
}  // namespace vitrine
