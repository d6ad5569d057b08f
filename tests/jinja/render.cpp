// Renders templates for tools/compare_templates.py. A line of input is {"template", "context"}, a
// line of output {"text"} or {"error", "message"}. The clock stands at 2026-01-02 03:04:05.
#include <iostream>
#include <string>

#include "base/json.h"
#include "jinja/template.h"

namespace vitrine::jinja {
namespace {

json::object failure(const Error& error) {
  return {{"error", error_code_name(error.code)}, {"message", error.message}};
}

json::object answer(const json::object& line) {
  auto made = Template::parse(line.at("template").as_string(), "template");
  if (!made.ok()) return failure(made.error());
  Dict context;
  for (const auto& [key, value] : line.at("context").as_object())
    context.set(Text(std::string(key)), from_json(value, false));
  std::tm now{};
  now.tm_year = 126, now.tm_mday = 2, now.tm_hour = 3, now.tm_min = 4, now.tm_sec = 5;
  now.tm_wday = 5, now.tm_yday = 1;
  auto text = (*made)->render(context, Limits{}, now);
  if (!text.ok()) return failure(text.error());
  return {{"text", text->view()}};
}

}  // namespace
}  // namespace vitrine::jinja

int main() {
  using namespace vitrine;
  for (std::string line; std::getline(std::cin, line);) {
    auto parsed = parse_json(line, "line", 128);
    json::object out = parsed.ok() ? jinja::answer(parsed->as_object())
                                   : json::object{{"error", "input"}, {"message", ""}};
    std::cout << to_json(out) << "\n" << std::flush;
  }
}
