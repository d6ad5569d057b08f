// The pre-tokenizers that GGUF files name instead of spelling out (tokenizer.ggml.pre).
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace vitrine {

struct GgufPre {
  std::span<const std::string_view> patterns;  // applied one after the other, matches isolated
  bool ignore_merges = false;
  bool add_bos = false;
  bool add_sep = false;  // BOS in front and EOS behind, as BERT-like models want
  bool marks = false;    // SentencePiece style: spaces as U+2581, text not byte-level
};

// Null for an unknown name.
const GgufPre* find_gguf_pre(std::string_view name);
// Every known name, for error messages.
std::string gguf_pre_names();

}  // namespace vitrine
