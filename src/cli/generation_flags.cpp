#include "cli/generation_flags.h"

#include <algorithm>

namespace vitrine {

void GenerationFlags::add(CLI::App& app) {
  app.add_option("-n,--max-tokens", max_tokens, "tokens to generate at most")
      ->capture_default_str();
  app.add_flag("--ignore-eos", ignore_eos, "go on after an end token");
  app.add_flag("--parse-special", parse_special,
               "special tokens spelt in the prompt become those tokens");
  sampling.add(app);
  engine.add(app);
}

Result<Request> GenerationFlags::request(std::vector<std::int32_t> prompt,
                                         const ModelFile& file) const {
  Request r;
  r.prompt = std::move(prompt);
  r.max_tokens = max_tokens;
  r.ignore_eos = ignore_eos;
  VT_TRY(r.sampling, sampling.resolve(file.generation()));
  return r;
}

StreamDecoder answer_decoder(const Tokenizer& tokenizer, const std::vector<std::int32_t>& prompt) {
  bool begins = std::all_of(prompt.begin(), prompt.end(),
                            [&](std::int32_t id) { return tokenizer.is_special(id); });
  return StreamDecoder(tokenizer, true, !begins);
}

}  // namespace vitrine
