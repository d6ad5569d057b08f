#include "cli/generation_flags.h"

namespace vitrine {

void GenerationFlags::add(CLI::App& app) {
  app.add_option("-n,--max-tokens", max_tokens, "tokens to generate at most")
      ->capture_default_str();
  app.add_flag("--ignore-eos", ignore_eos, "go on after an end token");
  app.add_option("--stop", stops, "end the text before this string; may be given several times")
      ->take_all()
      ->allow_extra_args(false);
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

Result<TextStream> GenerationFlags::text(const Tokenizer& tokenizer,
                                         const std::vector<std::int32_t>& prompt) const {
  VT_TRY(auto stop_strings, StopStrings::make(stops, "--stop"));
  return TextStream(tokenizer, prompt, std::move(stop_strings));
}

}  // namespace vitrine
