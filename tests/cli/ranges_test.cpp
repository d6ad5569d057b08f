// Every option of every command, as the help prints them: what is outside the printed range is
// refused when the line is parsed, with the name, what was found and what is allowed.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <regex>
#include <sstream>

#include "cli/program.h"

namespace vitrine::test {
namespace {

using ::testing::HasSubstr;

struct OptionHelp {
  std::string command, name;
  std::string kind;  // "INT(0..5)", "{a,b}", "TEXT"; empty: a flag
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

std::vector<std::string> all_commands() {
  std::vector<std::string> out;
  bool inside = false;
  static const std::regex kCommand("^  ([a-z-]+) .*");
  for (const std::string& line : lines_of(vitrine({"--help"}).out)) {
    std::smatch found;
    if (inside && std::regex_match(line, found, kCommand)) out.push_back(found[1]);
    if (line == "Subcommands:") inside = true;
  }
  return out;
}

std::vector<OptionHelp> options_of(const std::string& command) {
  static const std::regex kOption(
      R"(^ +(?:-\w,)?(--[\w-]+)(?: ((?:INT|NUMBER)\([^)]*\)|\{[^}]*\}|TEXT\(may be empty\)|TEXT|\S+))?.*)");
  std::vector<OptionHelp> out;
  for (const std::string& line : lines_of(vitrine({command, "--help"}).out)) {
    std::smatch found;
    if (!std::regex_match(line, found, kOption) || found[1] == "--help") continue;
    // Two spaces separate the description.
    bool flag = line.find(found[1].str() + "  ") != std::string::npos || !found[2].matched ||
                found[2] == "Excludes:" ||
                line.substr(line.find(found[1].str()) + found[1].length(), 2) == "  ";
    out.push_back({command, found[1], flag ? "" : found[2].str()});
  }
  return out;
}

// Whether the kind's text allows `value`; nothing when the kind is unknown.
std::optional<bool> allowed(const std::string& kind, const std::string& value) {
  static const std::regex kNumber(R"((INT|NUMBER)\((>?)(.+)\.\.(.+)\))");
  if (kind == "TEXT(may be empty)") return true;
  if (kind == "TEXT") return !value.empty();
  if (kind.starts_with("{")) {
    std::string inside = "," + kind.substr(1, kind.size() - 2) + ",";
    return inside.find("," + value + ",") != std::string::npos && !value.empty();
  }
  std::smatch found;
  if (!std::regex_match(kind, found, kNumber)) return std::nullopt;
  static const std::regex kDecimal(R"(-?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?)");
  if (!std::regex_match(value, kDecimal)) return false;
  long double number = std::strtold(value.c_str(), nullptr);
  if (found[1] == "INT" && number != std::floor(number)) return false;
  long double least = std::stold(found[3]), most = std::stold(found[4]);
  return number >= least && number <= most && !(found[2] == ">" && number == least);
}

const std::vector<std::string> kValues{
    "",     "nan",  "inf", "-1",    "1e999", "99999999999999999999",
    "0x10", "1abc", " 1",  "1e300", "-inf",  "2147483648"};

// With an option that there is not, so that the command never runs.
void try_value(const OptionHelp& option, const std::string& value) {
  SCOPED_TRACE(option.command + " " + option.name + " '" + value + "' of " + option.kind);
  Exit e = vitrine({option.command, option.name, value, "--no-such-option"});
  ASSERT_EQ(e.code, 2) << e.err;
  ASSERT_EQ(e.out, "");
  auto expected = allowed(option.kind, value);
  ASSERT_TRUE(expected.has_value()) << "a kind of value that this test does not know";
  std::string first = lines_of(e.err).at(0);
  bool refused = first.find("found '" + value + "', allowed ") != std::string::npos &&
                 first.find(option.name + ": ") != std::string::npos;
  EXPECT_EQ(refused, !*expected) << e.err;
}

TEST(Ranges, AreCheckedForEveryOptionOfEveryCommand) {
  std::vector<std::string> commands = all_commands();
  ASSERT_GE(commands.size(), 10u);
  std::vector<std::string> seen;  // flags that commands share: all values once, then a few
  int numbers = 0;
  for (const std::string& command : commands)
    for (const OptionHelp& option : options_of(command)) {
      if (option.kind.empty()) continue;
      numbers += option.kind.starts_with("INT") || option.kind.starts_with("NUMBER");
      bool again = std::find(seen.begin(), seen.end(), option.name + option.kind) != seen.end();
      seen.push_back(option.name + option.kind);
      for (const std::string& value : again ? std::vector<std::string>{"", "nan"} : kValues)
        try_value(option, value);
    }
  EXPECT_GE(numbers, 100);
}

TEST(Ranges, HoldForWhatOnceWentThrough) {
  for (const std::vector<std::string>& flag : {std::vector<std::string>{"--host", ""},
                                               {"--threads", "100000"},
                                               {"--max-headers", "-1"},
                                               {"--default-timeout", "nan"},
                                               {"--port", "65536"},
                                               {"--port", "010"}}) {
    Exit e = vitrine({"serve", flag[0], flag[1], "--no-such-option"});
    EXPECT_EQ(e.code, 2);
    if (flag[1] == "010") continue;  // a decimal number, not an octal one
    EXPECT_THAT(e.err, HasSubstr(flag[0] + ": found '" + flag[1] + "', allowed "));
  }
}

TEST(Ranges, FlagsTakeNoValue) {
  for (const OptionHelp& option : options_of("serve")) {
    if (!option.kind.empty()) continue;
    for (const char* value : {"nan", "99999999999999999999", "1e999"}) {
      Exit e = vitrine({"serve", option.name + "=" + value, "--no-such-option"});
      EXPECT_EQ(e.code, 2) << option.name << e.err;
      EXPECT_THAT(e.err, HasSubstr(option.name.substr(2)));
    }
  }
}

// The ends of the ranges are allowed, so they must work or be refused by what they ask for.
TEST(Ranges, HaveEndsThatDoNotCrash) {
  static const std::regex kNumber(R"(\w+\((>?)(.+)\.\.(.+)\))");
  for (const OptionHelp& option : options_of("generate")) {
    std::smatch found;
    if (!std::regex_match(option.kind, found, kNumber)) continue;
    for (int end : {2, 3}) {
      if (end == 2 && found[1] == ">") continue;
      SCOPED_TRACE(option.name + " " + found[end].str());
      Exit e = vitrine(generate(fixture("llama"), {"--max-tokens", "2", option.name, found[end]}));
      if (option.name == "--max-tokens") {
        EXPECT_EQ(e.code, 2);  // given twice
        continue;
      }
      EXPECT_TRUE(e.code == 0 || e.code == 1) << e.code << e.err;
    }
  }
}

}  // namespace
}  // namespace vitrine::test
