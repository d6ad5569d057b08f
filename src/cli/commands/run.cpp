// vitrine run: a chat in the terminal; one answer, or a conversation when there is no prompt.
#include <unistd.h>

#include <iostream>

#include "cli/chat_flags.h"
#include "cli/command.h"
#include "cli/generation_flags.h"
#include "cli/output.h"

namespace vitrine {
namespace {

struct Flags {
  ModelFlag model;
  ChatFlags chat;
  GenerationFlags generation;
  std::string prompt, system;
  Option prompt_option;
};

// A conversation and what it runs on.
struct Session {
  const Flags& flags;
  Engine& engine;
  const Tokenizer& tokenizer;
  const ChatTemplate& chat;
  ChatInput input;

  void add(const char* role, const std::string& content) {
    input.messages.emplace_back();
    input.messages.back().role = role;
    input.messages.back().content = content;
  }
};

// The answer as the next turn sees it: without its reasoning.
std::string said(const ChatTemplate& chat, const std::string& text) {
  auto parser = make_parser(nullptr, &chat.reasoning(), false);
  ChatOutput out;
  parser->push(text, out);
  parser->finish(out);
  return out.content;
}

// Asks, shows the answer as it is made, and keeps both in the conversation.
Result<int> ask(Session& session, const std::string& question) {
  const Flags& f = session.flags;
  session.add("user", question);
  VT_TRY(ChatPrompt prompt, session.chat.prompt(session.input));
  std::vector<std::string> stops = session.chat.stops();
  stops.insert(stops.end(), f.generation.stops.begin(), f.generation.stops.end());
  VT_TRY(auto stop_strings, StopStrings::make(std::move(stops), "--stop"));
  TextStream text(session.tokenizer, prompt.ids, std::move(stop_strings));
  VT_TRY(Request request,
         f.generation.request(prompt.ids, session.engine.file(), &session.tokenizer));
  if (!f.generation.ignore_eos)
    for (std::int32_t id : session.chat.stop_token_ids()) request.stop_token_ids.push_back(id);
  Engine& engine = session.engine;
  std::string answer;
  VT_TRY(auto stream, engine.submit(std::move(request)));
  auto show = [&](const std::string& part) {
    answer += part;
    std::fwrite(part.data(), 1, part.size(), stdout);
    std::fflush(stdout);
  };
  while (auto event = stream->next()) {
    show(text.push(event->token));
    if (text.stopped()) stream->stop();
    if (std::ferror(stdout)) stream->cancel();  // whoever read this has gone
  }
  show(text.finish());
  std::fputc('\n', stdout);
  session.add("assistant", said(session.chat, answer));
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
  VT_TRY(auto chat, f.chat.load(*file, tokenizer.get()));
  bool loop = !f.prompt_option.given();
  bool pipe = loop && !isatty(STDIN_FILENO);  // one prompt
  std::string text = f.prompt;
  if (pipe) text.assign(std::istreambuf_iterator<char>(std::cin), {});
  VT_TRY(auto engine, f.generation.engine.start(file));
  Session session{f, *engine, *tokenizer, *chat, {}};
  if (!f.system.empty()) session.add("system", f.system);
  if (!loop || pipe) return ask(session, text);
  fmt::print(stderr, "{} on {}. Say something; an empty line or Ctrl-D ends.\n",
             engine->info().arch, engine->info().backend_description);
  std::string line;
  while (fmt::print(stderr, "> "), std::getline(std::cin, line) && !line.empty()) {
    auto code = ask(session, line);
    if (!code.ok()) fail(code.error());
  }
  return 0;
}

Action add(const CommandLine& line) {
  auto f = std::make_shared<Flags>();
  f->model.add(line);
  f->prompt_option =
      line.option("prompt", f->prompt, "what to say; without it, a conversation").may_be_empty();
  line.option("--system", f->system, "a system message before it").may_be_empty();
  f->chat.add(line);
  f->generation.add(line);
  return [f] { return run(*f); };
}

}  // namespace

extern const Command kCommand_run;
const Command kCommand_run{"run", 10, "chat in the terminal", add};

}  // namespace vitrine
