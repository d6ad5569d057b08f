// vitrine generate: one prompt, one answer, as text or as one JSON document.
#include "cli/command.h"
#include "cli/generation_flags.h"
#include "cli/output.h"

namespace vitrine {
namespace {

struct Flags {
  ModelFlag model;
  GenerationFlags generation;
  std::string prompt, ids;
  CLI::Option* prompt_option = nullptr;
  bool json = false;
};

json::object usage_json(const Usage& u) {
  return {{"prompt_tokens", u.prompt_tokens},
          {"completion_tokens", u.completion_tokens},
          {"cached_tokens", u.cached_tokens}};
}

json::object timings_json(const Timings& t) {
  return {{"queue_ms", t.queue_ms},           {"ttft_ms", t.ttft_ms},
          {"prefill_ms", t.prefill_ms},       {"decode_ms", t.decode_ms},
          {"prefill_tok_s", t.prefill_tok_s}, {"decode_tok_s", t.decode_tok_s}};
}

Result<std::vector<std::int32_t>> prompt_ids(const Flags& f, const Tokenizer* tokenizer) {
  if (f.prompt_option->count() == 0) return parse_ids(f.ids, "--ids");
  if (tokenizer == nullptr)
    return make_error(ErrorCode::kNotFound, "{}: has no tokenizer; give --ids instead of --prompt",
                      f.model.path);
  return tokenizer->encode(f.prompt, {.parse_special = f.generation.parse_special});
}

Result<int> generate(const Flags& f) {
  VT_TRY(auto file, f.model.open());
  VT_TRY(auto tokenizer, load_tokenizer(*file));
  VT_TRY(auto prompt, prompt_ids(f, tokenizer.get()));
  VT_TRY(Request request, f.generation.request(prompt, *file));
  VT_TRY(auto engine, f.generation.engine.start(file));
  VT_TRY(auto stream, engine->submit(std::move(request)));
  std::vector<std::int32_t> tokens;
  while (auto event = stream->next()) tokens.push_back(event->token);
  const Finish& finish = stream->wait();
  if (finish.reason == FinishReason::kError)
    return make_error(ErrorCode::kInvalid, "{}", finish.error);
  json::value text;
  if (tokenizer) {
    StreamDecoder decoder = answer_decoder(*tokenizer, prompt);
    std::string out;
    for (std::int32_t id : tokens) out += decoder.push(id);
    text = json::string(out + decoder.finish());
  }
  if (f.json)
    print_json(json::object{{"tokens", json::array(tokens.begin(), tokens.end())},
                            {"text", text},
                            {"finish_reason", finish_reason_name(finish.reason)},
                            {"seed", finish.seed},
                            {"usage", usage_json(finish.account.usage)},
                            {"timings", timings_json(finish.account.timings)}});
  else if (tokenizer)
    fmt::print("{}\n", std::string_view(text.as_string()));
  else
    fmt::print("{}\n", fmt::join(tokens, ","));
  return 0;
}

std::function<int()> add(CLI::App& app) {
  auto f = std::make_shared<Flags>();
  f->model.add(app);
  CLI::Option_group* input = app.add_option_group("prompt", "what to continue (one of)");
  f->prompt_option = input->add_option("--prompt", f->prompt, "text");
  input->add_option("--ids", f->ids, "token ids: 5,6,7");
  input->require_option(1);
  f->generation.add(app);
  app.add_flag("--json", f->json, "print one JSON document");
  return [f] {
    auto code = generate(*f);
    return code.ok() ? *code : fail(code.error());
  };
}

}  // namespace

extern const Command kCommand_generate;
const Command kCommand_generate{"generate", 20, "continue a prompt (text or ids) once", add};

}  // namespace vitrine
