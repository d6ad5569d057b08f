// Helpers of the tokenizer's tests.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "tokenizer/stream_decoder.h"
#include "tokenizer/tokenizer.h"

namespace vitrine {

inline const char* const kFixtureNames[] = {"byte_bpe", "spm_bpe", "unigram", "wordpiece"};

inline std::string fixture_text(const std::string& name, const std::string& file) {
  std::ifstream in(std::string(VT_FIXTURES) + "/tokenizer/" + name + "/" + file, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

inline std::unique_ptr<Tokenizer> make_tokenizer(std::string_view json,
                                                 std::string_view config = "") {
  Result<std::unique_ptr<Tokenizer>> made = Tokenizer::from_json(json, config);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
  return made.ok() ? std::move(made).value() : nullptr;
}

inline std::unique_ptr<Tokenizer> fixture_tokenizer(const std::string& name) {
  return make_tokenizer(fixture_text(name, "tokenizer.json"));
}

inline std::string decode_streamed(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids,
                                   bool skip_special = false) {
  StreamDecoder decoder(tokenizer, skip_special);
  std::string text;
  for (std::int32_t id : ids) text += decoder.push(id);
  return text + decoder.finish();
}

using Ids = std::vector<std::int32_t>;
inline constexpr EncodeOptions kPlain{false, false};
inline constexpr EncodeOptions kParse{false, true};

}  // namespace vitrine
