// vitrine run: text to the terminal as it is made; a prompt loop when there is no prompt.
#include <unistd.h>

#include <iostream>

#include "cli/command.h"
#include "cli/generation_flags.h"
#include "cli/output.h"

namespace vitrine {
namespace {

struct Flags {
  ModelFlag model;
  GenerationFlags generation;
  std::string prompt;
  CLI::Option* prompt_option = nullptr;
};

Result<int> stream_once(const Flags& f, Engine& engine, const Tokenizer& tokenizer,
                        const std::string& prompt) {
  auto ids = tokenizer.encode(prompt, {.parse_special = f.generation.parse_special});
  VT_TRY(TextStream text, f.generation.text(tokenizer, ids));
  VT_TRY(Request request, f.generation.request(ids, engine.file(), &tokenizer));
  VT_TRY(auto stream, engine.submit(std::move(request)));
  auto show = [](const std::string& part) {
    std::fwrite(part.data(), 1, part.size(), stdout);
    std::fflush(stdout);
  };
  while (auto event = stream->next()) {
    show(text.push(event->token));
    if (text.stopped()) stream->stop();
    if (std::ferror(stdout)) stream->cancel();  // whoever read this has gone
  }
  show(text.finish() + "\n");
  const Finish& finish = stream->wait();
  if (finish.reason == FinishReason::kError)
    return make_error(ErrorCode::kInvalid, "{}", finish.error);
  const Usage& usage = finish.account.usage;
  const Timings& t = finish.account.timings;
  fmt::print(
      stderr,
      "[{} prompt tokens at {:.1f} tok/s, first token after {:.0f} ms, {} tokens at {:.1f} tok/s, "
      "{}, seed {}]\n",
      usage.prompt_tokens, t.prefill_tok_s, t.ttft_ms,
      text.stopped() ? text.tokens() : usage.completion_tokens, t.decode_tok_s,
      text.stopped() ? "stop" : finish_reason_name(finish.reason), finish.seed);
  return 0;
}

Result<int> run(const Flags& f) {
  VT_TRY(auto file, f.model.open());
  VT_TRY(auto tokenizer, load_tokenizer(*file));
  if (!tokenizer)
    return make_error(ErrorCode::kNotFound, "{}: has no tokenizer; `vitrine generate` takes --ids",
                      f.model.path);
  bool loop = f.prompt_option->count() == 0;
  if (loop && !isatty(STDIN_FILENO)) {
    // A pipe is one prompt.
    std::string text{std::istreambuf_iterator<char>(std::cin), {}};
    VT_TRY(auto engine, f.generation.engine.start(file));
    return stream_once(f, *engine, *tokenizer, text);
  }
  VT_TRY(auto engine, f.generation.engine.start(file));
  if (!loop) return stream_once(f, *engine, *tokenizer, f.prompt);
  fmt::print(stderr, "{} on {}. Type a text to continue; an empty line or Ctrl-D ends.\n",
             engine->model().arch, engine->backend().description());
  std::string line;
  while (fmt::print(stderr, "> "), std::getline(std::cin, line) && !line.empty()) {
    auto code = stream_once(f, *engine, *tokenizer, line);
    if (!code.ok()) fail(code.error());
  }
  return 0;
}

std::function<int()> add(CLI::App& app) {
  auto f = std::make_shared<Flags>();
  f->model.add(app);
  f->prompt_option =
      app.add_option("prompt", f->prompt, "text to continue; without it, a prompt loop");
  f->generation.add(app);
  return [f] {
    auto code = run(*f);
    return code.ok() ? *code : fail(code.error());
  };
}

}  // namespace

extern const Command kCommand_run;
const Command kCommand_run{"run", 10, "stream text to the terminal", add};

}  // namespace vitrine
