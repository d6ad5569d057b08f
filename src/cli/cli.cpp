#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <vector>

#include "cli/command.h"
#include "cli/output.h"

namespace vitrine {

int run_cli(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  CLI::App app(
      "Vitrine: an LLM inference engine that one can see through.\n"
      "MODEL is a GGUF file or a Hugging Face folder.");
  app.name("vitrine");
  app.require_subcommand(1);
  app.set_version_flag("--version", "vitrine " VITRINE_VERSION);
  std::vector<const Command*> commands(all_commands().begin(), all_commands().end());
  std::sort(commands.begin(), commands.end(), [](auto* a, auto* b) { return a->order < b->order; });
  std::vector<std::pair<CLI::App*, Action>> actions;
  for (const Command* command : commands) {
    CLI::App* sub = app.add_subcommand(command->name, command->help);
    actions.emplace_back(sub, command->add(CommandLine(*sub)));
  }
  if (argc <= 1) {
    std::cout << app.help();
    return 0;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);
    std::cerr << "error: " << e.what() << "\n";
    const CLI::App* at = app.get_subcommands().empty() ? &app : app.get_subcommands()[0];
    std::cerr << "see: vitrine " << (at == &app ? "" : at->get_name() + " ") << "--help\n";
    return 2;
  }
  for (auto& [sub, action] : actions) {
    if (!sub->parsed()) continue;
    try {
      Result<int> result = action();
      int code = result.ok() ? *result : fail(result.error());
      if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return code;
      std::cerr << "error: the output could not be written\n";
    } catch (const std::exception& e) {
      std::cerr << "error: " << e.what() << "\n";
    }
    return 1;
  }
  return 2;
}

}  // namespace vitrine
