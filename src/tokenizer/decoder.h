// From tokens back to text.
//
// A decoder is a chain of steps over the tokens' contents. The chain runs as a stream, so that a
// whole sequence and a sequence that arrives token by token give the same text: steps before a fuse
// see one token at a time, steps after it see one long text in parts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tokenizer/regex.h"

namespace vitrine {

namespace dec {

struct Replace {
  std::string text, content;
};
struct ReplaceRegex {
  Regex regex;
  std::string content;
};
// Runs of byte tokens become text; a run that is not UTF-8 becomes one U+FFFD per byte. That is
// only known at its end, so a run is held back until then.
struct ByteFallback {};
// Byte tokens become their byte at once.
struct RawBytes {};
struct Fuse {};
struct Strip {
  std::string content;  // one character
  std::size_t start, stop;
};
struct Metaspace {
  std::string replacement;
  bool drop_first;  // in the first token the mark stands for nothing
};
struct WordPiece {
  std::string prefix;
  bool cleanup;
};
struct ByteLevel {};  // fuses
struct WordSuffix {
  std::string suffix;
};
struct JoinWithSpaces {};

using Step = std::variant<Replace, ReplaceRegex, ByteFallback, RawBytes, Fuse, Strip, Metaspace,
                          WordPiece, ByteLevel, WordSuffix, JoinWithSpaces>;

}  // namespace dec

class TokenDecoder {
 public:
  void add(dec::Step step);
  const std::vector<dec::Step>& steps() const { return steps_; }
  // One token by itself, without the rules for its place in a text.
  std::string piece(std::string_view content, bool raw) const;

 private:
  std::vector<dec::Step> steps_;
};

class DecodeStream {
 public:
  DecodeStream(const TokenDecoder& decoder, bool continues);
  // Appends to `out` the text that is certain now. `raw`: the content is text as it stands, not
  // spelt in a byte-level alphabet.
  void push(std::string_view content, bool raw, std::string& out);
  void finish(std::string& out);

 private:
  struct State {
    bool fused = false;
    std::uint64_t seen = 0;  // tokens so far
    std::size_t stripped = 0;
    bool stripping = true;
    std::string held;
    bool holds = false;
  };
  struct Token {
    std::string text;
    bool raw;
  };
  void feed(std::size_t step, Token token);
  void close(std::size_t step);
  void apply(const dec::Replace& s, std::size_t i, Token token);
  void apply(const dec::ReplaceRegex& s, std::size_t i, Token token);
  void apply(const dec::ByteFallback& s, std::size_t i, Token token);
  void apply(const dec::RawBytes& s, std::size_t i, Token token);
  void apply(const dec::Fuse& s, std::size_t i, Token token);
  void apply(const dec::Strip& s, std::size_t i, Token token);
  void apply(const dec::Metaspace& s, std::size_t i, Token token);
  void apply(const dec::WordPiece& s, std::size_t i, Token token);
  void apply(const dec::ByteLevel& s, std::size_t i, Token token);
  void apply(const dec::WordSuffix& s, std::size_t i, Token token);
  void apply(const dec::JoinWithSpaces& s, std::size_t i, Token token);
  void flush_bytes(std::size_t i);
  void emit(std::string& out, bool last);

  const TokenDecoder* decoder_;
  std::vector<State> states_;
  std::string pending_;  // decoded bytes not yet given out
};

}  // namespace vitrine
