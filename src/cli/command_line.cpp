// Everything that needs CLI11, which takes seconds to compile: the options of command_line.h, and the
// line of the whole program.
#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <optional>
#include <system_error>
#include <vector>

#include "base/log.h"
#include "cli/command.h"
#include "cli/output.h"

namespace vitrine {
namespace {

Option handle(CLI::Option* option) { return Option(option); }

// A value of the line, fit for a message.
std::string shown(const std::string& text) {
  constexpr std::size_t kMost = 80;
  std::string out = text.substr(0, kMost);
  for (char& c : out)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
  return fmt::format("'{}{}'", out, text.size() > kMost ? "..." : "");
}

// CLI11 itself would take hexadecimal and octal numbers, let -1 wrap around and clamp what is too
// large.
template <typename T>
bool parse_number(const std::string& text, const Range<T>& range, T& value) {
  const char* end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || rest != end) return false;
  // In this form NaN is outside.
  if (!(value >= range.least && value <= range.most)) return false;
  if constexpr (std::is_floating_point_v<T>)
    if (range.whole && value != std::floor(value)) return false;
  return !range.above || value > range.least;
}

constexpr const char* kText = "TEXT";
constexpr const char* kTextOrNothing = "TEXT(may be empty)";

Option add_text(CLI::Option* option) {
  option->type_name(kText);
  return handle(option->check(CLI::Validator(
      [option](const std::string& text) -> std::string {
        if (!text.empty() || option->get_type_name() == kTextOrNothing) return "";
        return "found '', allowed a text that is not empty";
      },
      "")));
}

Option add_choices(CLI::Option* option, const Choices& choices) {
  option->type_name(fmt::format("{{{}}}", fmt::join(choices, ",")));
  return handle(option->check(CLI::Validator(
      [choices](const std::string& text) -> std::string {
        if (std::find(choices.begin(), choices.end(), text) != choices.end()) return "";
        return fmt::format("found {}, allowed {}", shown(text), fmt::join(choices, ", "));
      },
      "")));
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
Option Option::may_be_empty() const { return handle(option_->type_name(kTextOrNothing)); }
Option Option::comma_separated() const { return handle(option_->delimiter(',')); }
Option Option::repeated() const { return handle(option_->take_all()->allow_extra_args(false)); }
Option Option::excludes(Option other) const { return handle(option_->excludes(other.option_)); }
Option Option::needs(Option other) const { return handle(option_->needs(other.option_)); }
bool Option::given() const { return option_->count() > 0; }

template <typename T>
requires std::is_arithmetic_v<typename NumberOf<T>::type> Option
CommandLine::option(const std::string& names, T& value, Range<typename NumberOf<T>::type> range,
                    const std::string& help)
const {
  using Number = typename NumberOf<T>::type;
  auto check = [range](const std::string& text) -> std::string {
    Number number{};
    if (parse_number(text, range, number)) return "";
    return fmt::format("found {}, allowed {} {} {} to {}", shown(text),
                       range.whole ? "a whole number" : "a number", range.above ? "above" : "from",
                       range.least, range.most);
  };
  auto set = [&value, range](const std::string& text) {
    Number number{};
    if (parse_number(text, range, number)) value = T(number);
  };
  CLI::Option* option = app_->add_option_function<std::string>(names, set, help);
  option->check(CLI::Validator(check, ""))
      ->type_name(fmt::format("{}({}{}..{})", range.whole ? "INT" : "NUMBER",
                              range.above ? ">" : "", range.least, range.most));
  if constexpr (std::is_arithmetic_v<T>)
    option->default_function([&value] { return fmt::format("{}", value); });
  else if constexpr (std::is_same_v<T, std::chrono::seconds>)
    option->default_function([&value] { return fmt::format("{}", value.count()); });
  return handle(option);
}

Option CommandLine::option(const std::string& names, std::string& value,
                           const std::string& help) const {
  return add_text(app_->add_option(names, value, help));
}
Option CommandLine::option(const std::string& names, std::vector<std::string>& values,
                           const std::string& help) const {
  return add_text(app_->add_option(names, values, help));
}
Option CommandLine::option(const std::string& names, std::string& value, const Choices& choices,
                           const std::string& help) const {
  return add_choices(app_->add_option(names, value, help), choices);
}
Option CommandLine::option(const std::string& names, std::vector<std::string>& values,
                           const Choices& choices, const std::string& help) const {
  return add_choices(app_->add_option(names, values, help), choices);
}

Option CommandLine::flag(const std::string& names, bool& value, const std::string& help) const {
  return handle(app_->add_flag(names, value, help)->disable_flag_override());
}

CommandLine CommandLine::group(const std::string& title, const std::string& help, int least,
                               int most) const {
  auto* group = app_->add_option_group(title, help);
  group->require_option(static_cast<std::size_t>(least), static_cast<std::size_t>(most));
  return CommandLine(*group);
}

Option CommandLine::get(const std::string& name) const { return handle(app_->get_option(name)); }

#define VT_NUMBER(...)                                                             \
  template Option CommandLine::option(const std::string&, __VA_ARGS__&,            \
                                      Range<typename NumberOf<__VA_ARGS__>::type>, \
                                      const std::string&) const;
VT_NUMBER(int)
VT_NUMBER(std::int64_t)
VT_NUMBER(std::uint64_t)
VT_NUMBER(std::optional<std::uint64_t>)
VT_NUMBER(double)
VT_NUMBER(std::optional<double>)
VT_NUMBER(std::chrono::seconds)
#undef VT_NUMBER

int run_cli(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  set_log_level(LogLevel::kWarn);  // a server tells more: --log-level
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
    } catch (const std::bad_alloc&) {
      std::cerr << "error: out of memory\n";
    } catch (const std::system_error& e) {
      const bool thread = e.code() == std::errc::resource_unavailable_try_again;
      std::cerr << "error: " << (thread ? "cannot start a thread: " : "") << e.what() << "\n";
    } catch (const std::exception& e) {
      std::cerr << "error: " << e.what() << "\n";
    }
    return 1;
  }
  return 2;
}

}  // namespace vitrine
