// The prompt and the limits of a generation, for `run` and `generate`.
#pragma once

#include "cli/flags.h"

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

}  // namespace vitrine
