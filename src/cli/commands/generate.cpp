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
  Option prompt_option;
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
  if (!f.prompt_option.given()) return parse_ids(f.ids, "--ids");
  if (tokenizer == nullptr)
    return make_error(ErrorCode::kNotFound, "{}: has no tokenizer; give --ids instead of --prompt",
                      f.model.path);
  return tokenizer->encode(f.prompt, {.parse_special = f.generation.parse_special});
}

Result<int> generate(const Flags& f) {
  VT_TRY(auto file, f.model.open());
  VT_TRY(auto tokenizer, load_tokenizer(*file));
  VT_TRY(auto prompt, prompt_ids(f, tokenizer.get()));
  std::optional<TextStream> text;
  if (tokenizer) {
    VT_TRY(TextStream made, f.generation.text(*tokenizer, prompt));
    text.emplace(std::move(made));
  } else if (!f.generation.stops.empty()) {
    return make_error(ErrorCode::kNotFound, "--stop: {} has no tokenizer, so there is no text",
                      f.model.path);
  }
  VT_TRY(Request request, f.generation.request(prompt, *file, tokenizer.get()));
  VT_TRY(auto engine, f.generation.engine.start(file));
  VT_TRY(auto stream, engine->submit(std::move(request)));
  std::vector<std::int32_t> tokens;
  std::string out;
  while (auto event = stream->next()) {
    if (text && text->stopped()) continue;  // made before the engine saw the end
    tokens.push_back(event->token);
    if (text) out += text->push(event->token);
    if (text && text->stopped()) stream->stop();
  }
  const Finish& finish = stream->wait();
  if (finish.reason == FinishReason::kError)
    return make_error(ErrorCode::kInvalid, "{}", finish.error);
  if (text) out += text->finish();
  bool stopped = text && text->stopped();
  Usage usage = finish.account.usage;
  if (stopped) usage.completion_tokens = text->tokens();
  if (f.json)
    print_json(json::object{{"tokens", json::array(tokens.begin(), tokens.end())},
                            {"text", text ? json::value(out) : json::value()},
                            {"finish_reason", stopped ? "stop" : finish_reason_name(finish.reason)},
                            {"seed", finish.seed},
                            {"usage", usage_json(usage)},
                            {"timings", timings_json(finish.account.timings)}});
  else if (text)
    fmt::print("{}\n", out);
  else
    fmt::print("{}\n", fmt::join(tokens, ","));
  return 0;
}

Action add(const CommandLine& line) {
  auto f = std::make_shared<Flags>();
  f->model.add(line);
  CommandLine input = line.group("prompt", "what to continue (one of)", 1, 1);
  f->prompt_option = input.option("--prompt", f->prompt, "text").may_be_empty();
  input.option("--ids", f->ids, "token ids: 5,6,7");
  f->generation.add(line);
  line.flag("--parse-special", f->generation.parse_special,
            "special tokens spelt in the prompt become those tokens");
  line.flag("--json", f->json, "print one JSON document");
  return [f] { return generate(*f); };
}

}  // namespace

extern const Command kCommand_generate;
const Command kCommand_generate{"generate", 20, "continue a prompt (text or ids) once", add};

}  // namespace vitrine
