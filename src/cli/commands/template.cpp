// vitrine template: a conversation as the prompt that the model would get.
#include <iostream>

#include "cli/chat_flags.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/output.h"

namespace vitrine {
namespace {

struct Flags {
  ModelFlag model;
  ChatFlags chat;
  std::string system, prompt, tools, kwargs;
  bool no_generation_prompt = false, source = false, json = false;
};

Result<ChatInput> conversation(const Flags& f) {
  ChatInput out;
  auto add = [&](const char* role, const std::string& content) {
    out.messages.emplace_back();
    out.messages.back().role = role;
    out.messages.back().content = content;
  };
  if (!f.system.empty()) add("system", f.system);
  add("user", f.prompt);
  out.add_generation_prompt = !f.no_generation_prompt;
  if (!f.tools.empty()) {
    VT_TRY(json::value tools, parse_json(f.tools, "--tools"));
    if (!tools.is_array())
      return make_error(ErrorCode::kInvalid, "--tools: allowed a JSON list of tools");
    out.tools = std::move(tools.get_array());
  }
  if (!f.kwargs.empty()) {
    VT_TRY(json::value kwargs, parse_json(f.kwargs, "--kwargs"));
    if (!kwargs.is_object())
      return make_error(ErrorCode::kInvalid, "--kwargs: allowed a JSON object");
    for (const auto& [name, value] : kwargs.get_object()) {
      if (ChatTemplate::is_reserved(name))
        return make_error(ErrorCode::kInvalid, "--kwargs: {} is a name that cannot be set",
                          std::string(name));
      out.kwargs[name] = value;
    }
  }
  return out;
}

Result<int> show(const Flags& f) {
  VT_TRY(auto file, f.model.open());
  VT_TRY(auto tokenizer, Tokenizer::load(*file));
  VT_TRY(auto chat, f.chat.load(*file, tokenizer.get()));
  if (f.source) {
    fmt::print("{}\n", chat->source());
    return 0;
  }
  VT_TRY(ChatInput input, conversation(f));
  auto prompt = chat->prompt(input);
  if (!prompt.ok())
    return make_error(prompt.error().code, "{}: {}", f.model.path, prompt.error().message);
  if (!f.json) {
    fmt::print("{}", prompt->text.view());
    return 0;
  }
  json::array spans;
  for (const jinja::Span& span : prompt->text.caller())
    spans.push_back(json::array{span.begin, span.end});
  print_json(
      json::object{{"prompt", prompt->text.view()},
                   {"tokens", json::array(prompt->ids.begin(), prompt->ids.end())},
                   {"caller_bytes", std::move(spans)},
                   {"template", chat->origin()},
                   {"tool_calls", chat->tools() ? json::value(chat->tools()->name) : json::value()},
                   {"reasoning", chat->reasoning().begin}});
  return 0;
}

Action add(const CommandLine& line) {
  auto f = std::make_shared<Flags>();
  f->model.add(line);
  f->chat.add(line);
  line.option("--prompt", f->prompt, "the user's message").show_default("Hello").may_be_empty();
  f->prompt = "Hello";
  line.option("--system", f->system, "a system message before it").may_be_empty();
  line.option("--tools", f->tools, "tools, as JSON: [{\"type\": \"function\", ...}]");
  line.option("--kwargs", f->kwargs,
              "variables for the template, as JSON: {\"enable_thinking\": false}");
  line.flag("--no-generation-prompt", f->no_generation_prompt,
            "without the beginning of the assistant's answer");
  line.flag("--source", f->source, "print the template itself");
  line.flag("--json", f->json, "print one JSON document");
  return [f] { return show(*f); };
}

}  // namespace

extern const Command kCommand_template;
const Command kCommand_template{"template", 45, "a chat as the prompt the model gets", add};

}  // namespace vitrine
