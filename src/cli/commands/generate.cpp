// vitrine generate: one prompt, one answer, as text or as one JSON document.
#include "cli/beam_flags.h"
#include "cli/command.h"
#include "cli/generation_flags.h"
#include "cli/output.h"

namespace vitrine {
namespace {

struct Flags {
  ModelFlag model;
  GenerationFlags generation;
  BeamFlags beams;
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

// One of the answers to the prompt.
struct Answer {
  std::shared_ptr<TokenStream> stream;
  std::optional<TextStream> reader;  // none: no tokenizer
  std::vector<std::int32_t> tokens;
  std::string text;

  void read();
  bool stopped() const { return reader && reader->stopped(); }
  Usage usage() const;
  const char* finish_reason() const {
    return stopped() ? "stop" : finish_reason_name(stream->wait().reason);
  }
  json::value text_json() const { return reader ? json::value(text) : json::value(); }
};

void Answer::read() {
  while (auto event = stream->next()) {
    if (stopped()) continue;  // made before the engine saw the end
    tokens.push_back(event->token);
    if (reader) text += reader->push(event->token);
    if (stopped()) stream->stop();
  }
  stream->wait();
  if (reader) text += reader->finish();
}

Usage Answer::usage() const {
  Usage out = stream->wait().account.usage;
  if (stopped()) out.completion_tokens = reader->tokens();
  return out;
}

// With the end token, which tells where a text has ended.
json::object beam_json(const Answer& a) {
  json::array tokens(a.tokens.begin(), a.tokens.end());
  const Finish& finish = a.stream->wait();
  if (finish.stop_token >= 0 && !a.stopped()) tokens.emplace_back(finish.stop_token);
  return {{"tokens", std::move(tokens)},
          {"score", *finish.score},
          {"text", a.text_json()},
          {"finish_reason", a.finish_reason()}};
}

void print_beams(const std::vector<Answer>& answers, bool as_json) {
  json::array beams;
  Usage usage = answers.front().usage();
  usage.completion_tokens = 0;
  for (const Answer& a : answers) {
    usage.completion_tokens += a.usage().completion_tokens;
    if (!a.stream->wait().score) continue;  // a constraint allows fewer texts
    if (as_json)
      beams.push_back(beam_json(a));
    else
      fmt::print("{:.6f}  {}\n", *a.stream->wait().score,
                 a.reader ? a.text : fmt::format("{}", fmt::join(a.tokens, ",")));
  }
  if (as_json)
    print_json(
        json::object{{"beams", std::move(beams)},
                     {"usage", usage_json(usage)},
                     {"timings", timings_json(answers.front().stream->wait().account.timings)}});
}

void print_answer(const Answer& a, bool as_json) {
  const Finish& finish = a.stream->wait();
  if (as_json)
    print_json(json::object{{"tokens", json::array(a.tokens.begin(), a.tokens.end())},
                            {"text", a.text_json()},
                            {"finish_reason", a.finish_reason()},
                            {"seed", finish.seed},
                            {"usage", usage_json(a.usage())},
                            {"timings", timings_json(finish.account.timings)}});
  else if (a.reader)
    fmt::print("{}\n", a.text);
  else
    fmt::print("{}\n", fmt::join(a.tokens, ","));
}

Result<int> generate(const Flags& f) {
  VT_TRY(auto file, f.model.open());
  VT_TRY(auto tokenizer, load_tokenizer(*file));
  VT_TRY(auto prompt, prompt_ids(f, tokenizer.get()));
  if (!tokenizer && !f.generation.stops.empty())
    return make_error(ErrorCode::kNotFound, "--stop: {} has no tokenizer, so there is no text",
                      f.model.path);
  const bool beams = f.beams.given();
  VT_TRY(Request request, f.generation.request(prompt, *file, tokenizer.get(), beams));
  VT_RETURN_IF_ERROR(f.beams.apply(request));
  EngineFlags flags = f.generation.engine;
  // Beams run side by side.
  if (beams && flags.options.sequences > 0)
    flags.options.sequences = std::max(flags.options.sequences, f.beams.options.beams);
  VT_TRY(auto engine, flags.start(file));
  VT_TRY(auto streams, engine->submit_choices(std::move(request)));
  std::vector<Answer> answers(streams.size());
  for (std::size_t i = 0; i < streams.size(); ++i) {
    answers[i].stream = streams[i];
    if (!tokenizer) continue;
    VT_TRY(TextStream made, f.generation.text(*tokenizer, prompt));
    answers[i].reader.emplace(std::move(made));
  }
  for (Answer& answer : answers) {
    answer.read();
    const Finish& finish = answer.stream->wait();
    if (finish.reason == FinishReason::kError)
      return make_error(ErrorCode::kInvalid, "{}", finish.error);
  }
  if (beams)
    print_beams(answers, f.json);
  else
    print_answer(answers.front(), f.json);
  return 0;
}

Action add(const CommandLine& line) {
  auto f = std::make_shared<Flags>();
  f->model.add(line);
  CommandLine input = line.group("prompt", "what to continue (one of)", 1, 1);
  f->prompt_option = input.option("--prompt", f->prompt, "text").may_be_empty();
  input.option("--ids", f->ids, "token ids: 5,6,7");
  f->generation.add(line);
  f->beams.add(line);
  line.flag("--parse-special", f->generation.parse_special,
            "special tokens spelt in the prompt become those tokens");
  line.flag("--json", f->json, "print one JSON document");
  return [f] { return generate(*f); };
}

}  // namespace

extern const Command kCommand_generate;
const Command kCommand_generate{"generate", 20, "continue a prompt (text or ids) once", add};

}  // namespace vitrine
