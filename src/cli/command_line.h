// What a command takes on its line: options with values, flags, positional arguments. CLI11 does
// the work. It is a large header, so only command_line.cpp includes it.
#pragma once

#include <chrono>
#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace vitrine {

// One option, flag or positional. A handle: copies mean the same option, which lives as long as the
// program's command line.
class Option {
 public:
  Option() = default;
  explicit Option(CLI::Option* option) : option_(option) {}

  Option required(bool yes = true) const;
  Option description(const std::string& text) const;
  // The help shows the value that the variable has now.
  Option show_default() const;
  Option show_default(const std::string& text) const;
  Option range(int least, int most) const;
  Option range(double least, double most) const;
  // From 0 to 2^64 - 1. CLI11 itself would let -1 wrap around and clamp what is too large.
  Option whole_number() const;
  // Values of a list stand in one argument, with commas.
  Option comma_separated() const;
  // One value each time the option is given.
  Option repeated() const;
  Option excludes(Option other) const;
  Option needs(Option other) const;
  // Whether it was on the line; known when the command runs.
  bool given() const;

 private:
  CLI::Option* option_ = nullptr;
};

class CommandLine {
 public:
  explicit CommandLine(CLI::App& app) : app_(&app) {}

  // `names` is "--name", "-n,--name", or "name" for a positional. Values are written to `value`,
  // which must outlive the command. The types that T may be are listed in command_line.cpp.
  template <typename T>
  Option option(const std::string& names, T& value, const std::string& help) const;
  // From 1 second to a day.
  Option seconds(const std::string& name, std::chrono::seconds& value,
                 const std::string& help) const;
  Option flag(const std::string& names, bool& value, const std::string& help) const;
  // Options of which at least and at most so many must be given.
  CommandLine group(const std::string& title, const std::string& help, int least, int most) const;
  // One that was added before.
  Option get(const std::string& name) const;

 private:
  CLI::App* app_;
};

}  // namespace vitrine
