// What a tokenizer is made of. The loaders fill it, Tokenizer runs it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tokenizer/added_tokens.h"
#include "tokenizer/decoder.h"
#include "tokenizer/model.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/pretokenizer.h"
#include "tokenizer/vocab.h"

namespace vitrine {

// No real tokenizer has a longer chain; a longer one would only cost time on every text.
inline constexpr std::size_t kMostSteps = 64;

struct TokenizerParts {
  std::string kind;
  Vocab vocab;
  AddedTokens added;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  std::unique_ptr<WordModel> model;  // refers to `vocab`
  TokenDecoder decoder;
  bool raw_added = false;  // contents of added tokens are text, also where others are byte-level
  std::vector<std::int32_t> prefix, suffix;  // what add_special puts around a text
  std::optional<std::int32_t> bos, eos, unk, pad;
};

}  // namespace vitrine
