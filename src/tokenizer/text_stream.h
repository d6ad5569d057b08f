// From generated tokens to the text that a reader gets: decoding and stop strings in one place.
//
// A stop string is found wherever the token borders lie. The match that ends first wins; of several
// that end at the same byte, the longest. The text ends before it. Text that may be the beginning
// of a stop string is held back until that is known. Time is linear in the text, times the number
// of stop strings. One object per stream, one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/stream_decoder.h"

namespace vitrine {

// Immutable; streams share it.
class StopStrings {
 public:
  static constexpr std::size_t kMaxStops = 16;
  static constexpr std::size_t kMaxBytes = 1024;  // of each

  // Refuses too many, too long and empty ones, and what is not UTF-8, naming `what`.
  static Result<std::shared_ptr<const StopStrings>> make(std::vector<std::string> stops,
                                                         std::string_view what);

  std::size_t size() const { return stops_.size(); }
  const std::string& text(std::size_t i) const { return stops_[i]; }
  // How much of stop i the text ends with, after `byte`, when it ended with `matched` before.
  std::size_t advance(std::size_t i, std::size_t matched, char byte) const;

 private:
  std::vector<std::string> stops_;
  // borders_[i][k]: the longest proper prefix of stop i that its first k bytes end with.
  std::vector<std::vector<std::uint16_t>> borders_;
};

class TextStream {
 public:
  // `prompt`: what the tokens follow. After nothing but special tokens (BOS) a text begins, and the
  // tokenizer's rules for beginnings apply. `stops` may be null. A stop that is complete before
  // token number `min_tokens` counts as plain text. The tokenizer must outlive the stream.
  TextStream(const Tokenizer& tokenizer, std::span<const std::int32_t> prompt,
             std::shared_ptr<const StopStrings> stops = nullptr, int min_tokens = 0);

  // Special tokens that are part of the text; the others are left out.
  void show(std::vector<std::int32_t> special) { decoder_.show(std::move(special)); }
  // The text that is certain now: whole characters. Nothing once stopped.
  std::string push(std::int32_t id);
  // What was held back; the end of the stream.
  std::string finish();

  bool stopped() const { return matched_ != nullptr; }
  // The stop string that ended the text; null: none.
  const std::string* matched() const { return matched_; }
  // Tokens up to and including the one that completed the stop.
  int tokens() const { return tokens_; }

 private:
  std::string scan(std::string text);

  StreamDecoder decoder_;
  std::shared_ptr<const StopStrings> stops_;
  int min_tokens_;
  int tokens_ = 0;
  std::vector<std::size_t> progress_;  // by stop: how much of it the text ends with
  std::string held_;
  const std::string* matched_ = nullptr;
};

}  // namespace vitrine
