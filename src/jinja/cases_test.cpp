// Small templates against what Python's jinja2 made of them (tools/make_jinja_fixtures.py).
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "jinja/template.h"

namespace vitrine::jinja {
namespace {

TEST(Jinja, RendersAsPythonDoes) {
  std::ifstream file(std::string(VT_FIXTURES) + "/jinja/cases.json");
  std::stringstream text;
  text << file.rdbuf();
  auto fixture = parse_json(text.str(), "cases.json");
  ASSERT_TRUE(fixture.ok()) << fixture.error().message;
  Dict context;
  for (const auto& [key, value] : fixture->at("context").as_object())
    context.set(Text(std::string(key)), from_json(value, false));
  std::tm now{};
  now.tm_year = 126, now.tm_mday = 2, now.tm_hour = 3, now.tm_min = 4, now.tm_sec = 5;
  const json::array& cases = fixture->at("cases").as_array();
  EXPECT_GT(cases.size(), 400u);
  for (const json::value& one : cases) {
    std::string source(one.at(0).as_string()), kind(one.at(1).as_string());
    std::string have = "text", shown;
    auto made = Template::parse(source, "t");
    if (made.ok()) {
      auto rendered = (*made)->render(context, Limits{}, now);
      have = rendered.ok() ? "text" : error_code_name(rendered.error().code);
      shown = rendered.ok() ? rendered->bytes() : rendered.error().message;
    } else {
      have = error_code_name(made.error().code);
      shown = made.error().message;
    }
    EXPECT_EQ(have, kind) << source << "\n" << shown;
    if (have == kind && (kind == "text" || kind == "invalid")) {
      EXPECT_EQ(shown, std::string(one.at(2).as_string())) << source;
    }
  }
}

}  // namespace
}  // namespace vitrine::jinja
