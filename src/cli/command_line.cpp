// Everything that needs CLI11, which takes seconds to compile: the options of command_line.h, and the
// line of the whole program.
#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iostream>
#include <optional>
#include <vector>

#include "cli/command.h"
#include "cli/output.h"

namespace vitrine {
namespace {

Option handle(CLI::Option* option) { return Option(option); }

std::string check_whole_number(const std::string& text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc{} && rest == end) return "";
  return fmt::format("found {}, allowed a whole number from 0 to {}", text, UINT64_MAX);
}

}  // namespace

Option Option::required(bool yes) const { return handle(option_->required(yes)); }
Option Option::description(const std::string& text) const {
  return handle(option_->description(text));
}
Option Option::show_default() const { return handle(option_->capture_default_str()); }
Option Option::show_default(const std::string& text) const {
  return handle(option_->default_str(text));
}
Option Option::range(int least, int most) const {
  return handle(option_->check(CLI::Range(least, most)));
}
Option Option::range(double least, double most) const {
  return handle(option_->check(CLI::Range(least, most)));
}
Option Option::whole_number() const {
  return handle(option_->check(CLI::Validator(check_whole_number, "")));
}
Option Option::comma_separated() const { return handle(option_->delimiter(',')); }
Option Option::repeated() const { return handle(option_->take_all()->allow_extra_args(false)); }
Option Option::excludes(Option other) const { return handle(option_->excludes(other.option_)); }
Option Option::needs(Option other) const { return handle(option_->needs(other.option_)); }
bool Option::given() const { return option_->count() > 0; }

template <typename T>
Option CommandLine::option(const std::string& names, T& value, const std::string& help) const {
  return handle(app_->add_option(names, value, help));
}

Option CommandLine::seconds(const std::string& name, std::chrono::seconds& value,
                            const std::string& help) const {
  auto* option = app_->add_option_function<int>(
      name, [&value](int n) { value = std::chrono::seconds(n); },
      fmt::format("{} [{}]", help, value.count()));
  return handle(option).range(1, 86400);
}

Option CommandLine::flag(const std::string& names, bool& value, const std::string& help) const {
  return handle(app_->add_flag(names, value, help));
}

CommandLine CommandLine::group(const std::string& title, const std::string& help, int least,
                               int most) const {
  auto* group = app_->add_option_group(title, help);
  group->require_option(static_cast<std::size_t>(least), static_cast<std::size_t>(most));
  return CommandLine(*group);
}

Option CommandLine::get(const std::string& name) const { return handle(app_->get_option(name)); }

#define VT_VALUE(...) \
  template Option CommandLine::option(const std::string&, __VA_ARGS__&, const std::string&) const;
VT_VALUE(std::string)
VT_VALUE(std::vector<std::string>)
VT_VALUE(int)
VT_VALUE(std::int64_t)
VT_VALUE(std::uint64_t)
VT_VALUE(std::optional<std::uint64_t>)
VT_VALUE(double)
VT_VALUE(std::optional<double>)
#undef VT_VALUE

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
