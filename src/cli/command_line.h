// What a command takes on its line: options with values, flags, positional arguments. CLI11 does
// the work. It is a large header, so only command_line.cpp includes it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

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
  // Texts may be empty only where an option says so.
  Option may_be_empty() const;
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

// What a number may be. Whatever is not a plain decimal number inside is refused when the line is
// parsed: NaN, infinities, signs and digits that do not fit, text behind the number.
template <typename T>
struct Range {
  T least, most;
  bool above = false;  // `least` itself is not allowed
  bool whole = std::is_integral_v<T>;
};
// What a word may be.
using Choices = std::vector<std::string>;

template <typename T>
struct NumberOf {
  using type = T;
};
template <typename T>
struct NumberOf<std::optional<T>> {
  using type = T;
};
template <>
struct NumberOf<std::chrono::seconds> {
  using type = std::int64_t;
};

class CommandLine {
 public:
  explicit CommandLine(CLI::App& app) : app_(&app) {}

  // `names` is "--name", "-n,--name", or "name" for a positional. Values are written to `value`,
  // which must outlive the command. A number has a range and a word has its choices; the help shows
  // them. The types that T may be are listed in command_line.cpp.
  template <typename T>
  requires std::is_arithmetic_v<typename NumberOf<T>::type> Option
  option(const std::string& names, T& value, Range<typename NumberOf<T>::type> range,
         const std::string& help)
  const;
  Option option(const std::string& names, std::string& value, const std::string& help) const;
  Option option(const std::string& names, std::vector<std::string>& values,
                const std::string& help) const;
  Option option(const std::string& names, std::string& value, const Choices& choices,
                const std::string& help) const;
  Option option(const std::string& names, std::vector<std::string>& values, const Choices& choices,
                const std::string& help) const;
  // A time limit: from 1 second to a day.
  Option seconds(const std::string& name, std::chrono::seconds& value,
                 const std::string& help) const {
    return option(name, value, {1, 86400}, help).show_default();
  }
  Option flag(const std::string& names, bool& value, const std::string& help) const;
  // Options of which at least and at most so many must be given.
  CommandLine group(const std::string& title, const std::string& help, int least, int most) const;
  // One that was added before.
  Option get(const std::string& name) const;

 private:
  CLI::App* app_;
};

}  // namespace vitrine
