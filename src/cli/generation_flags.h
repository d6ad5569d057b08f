// The prompt and the limits of a generation, for `run` and `generate`.
#pragma once

#include "cli/flags.h"
#include "tokenizer/text_stream.h"

namespace vitrine {

struct GenerationFlags {
  EngineFlags engine;
  SamplingFlags sampling;
  int max_tokens = 256;
  bool ignore_eos = false;
  bool parse_special = false;
  std::vector<std::string> stops;
  void add(CLI::App& app);
  Result<Request> request(std::vector<std::int32_t> prompt, const ModelFile& file) const;
  // The text of what follows `prompt`, up to a stop string.
  Result<TextStream> text(const Tokenizer& tokenizer,
                          const std::vector<std::int32_t>& prompt) const;
};

}  // namespace vitrine
