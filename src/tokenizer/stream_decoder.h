// Turns a stream of token ids into a stream of text.
//
// What push() returns is whole UTF-8 characters only; everything pushed plus finish() is exactly
// Tokenizer::decode() of all ids. Constant time per token. One object per stream, one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace vitrine {

class DecodeStream;

class StreamDecoder {
 public:
  // `continues`: the ids follow a prompt, so that the rules for the start of a text (a leading
  // space that is dropped) do not apply. The tokenizer must outlive the decoder.
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special = false,
                         bool continues = false);
  StreamDecoder(StreamDecoder&&) noexcept;
  ~StreamDecoder();

  // Special tokens that are not skipped.
  void show(std::vector<std::int32_t> special) { shown_ = std::move(special); }
  std::string push(std::int32_t id);
  // What was held back; an unfinished character becomes U+FFFD.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  bool skip_special_;
  std::vector<std::int32_t> shown_;
  std::unique_ptr<DecodeStream> stream_;
};

}  // namespace vitrine
