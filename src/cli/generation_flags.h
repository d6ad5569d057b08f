// The prompt and the limits of a generation, for `run` and `generate`.
#pragma once

#include "cli/flags.h"
#include "grammar/compiler.h"
#include "tokenizer/constraint_source.h"
#include "tokenizer/text_stream.h"

namespace vitrine {

// --grammar, --json-schema, --regex, --choice
struct ConstraintFlags {
  std::string grammar_file, schema_file, regex;
  std::vector<std::string> choices;
  ConstraintSource source;
  void add(const CommandLine& line);
  // None when no flag was given.
  Result<std::optional<ConstraintSpec>> spec() const;
};

struct GenerationFlags {
  EngineFlags engine;
  SamplingFlags sampling;
  int max_tokens = 256;
  bool ignore_eos = false;
  bool parse_special = false;
  std::vector<std::string> stops;
  std::string repetition;
  ConstraintFlags constraint;
  void add(const CommandLine& line);
  // `tokenizer` may be null. `beams`: samplers that draw or cut are left out, and refused where a flag asks for them.
  Result<Request> request(std::vector<std::int32_t> prompt, const ModelFile& file,
                          const Tokenizer* tokenizer, bool beams = false) const;
  // The text of what follows `prompt`, up to a stop string.
  Result<TextStream> text(const Tokenizer& tokenizer,
                          const std::vector<std::int32_t>& prompt) const;
};

}  // namespace vitrine
