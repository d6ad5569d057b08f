// The prompt and the limits of a generation, for `run` and `generate`.
#pragma once

#include "cli/flags.h"
#include "tokenizer/stream_decoder.h"

namespace vitrine {

struct GenerationFlags {
  EngineFlags engine;
  SamplingFlags sampling;
  int max_tokens = 256;
  bool ignore_eos = false;
  bool parse_special = false;
  void add(CLI::App& app);
  Result<Request> request(std::vector<std::int32_t> prompt, const ModelFile& file) const;
};

// The decoder for what follows `prompt`. After nothing but special tokens (BOS) a text begins, and
// the tokenizer's rules for beginnings apply.
StreamDecoder answer_decoder(const Tokenizer& tokenizer, const std::vector<std::int32_t>& prompt);

}  // namespace vitrine
