// A text in windows, to be scored by a model: what perplexity and compare share.
//
// The text is encoded as one string. With a beginning token (BOS), it is cut into chunks of
// window - 1 tokens, each behind one BOS, and every token is scored. Without one, chunks overlap by
// one token, and only the first token of the text is not scored.
#pragma once

#include <string>
#include <vector>

#include "cli/flags.h"

namespace vitrine {

struct Windows {
  std::vector<std::vector<std::int32_t>> prompts;
  std::int64_t tokens = 0;  // that are scored
  std::int64_t bytes = 0;   // of the text
};

struct ScoringFlags {
  std::string text_file;
  int window = 0;          // 0: 1024, or the context where that is shorter
  std::int64_t limit = 0;  // tokens of the text that are used; 0: all
  bool parse_special = false;
  void add(const CommandLine& line);
  // Sets the window when it is not, and the engine's context to it.
  Status choose_window(const ModelFile& file, EngineFlags& engine);
  // The file's text by this tokenizer, which must be there.
  Result<Windows> read(const Tokenizer* tokenizer, const std::string& model) const;
};

// The logits of all positions but the last, to be read from the stream once it has finished.
Result<std::shared_ptr<TokenStream>> submit_for_logits(Engine& engine,
                                                       const std::vector<std::int32_t>& prompt);

// "12 of 100 windows", replacing itself, on a terminal only.
void show_progress(std::size_t done, std::size_t all);

}  // namespace vitrine
