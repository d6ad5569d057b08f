#include "jinja/template.h"

#include <gtest/gtest.h>

namespace vitrine::jinja {
namespace {

Result<Text> render(std::string_view source, const Dict& context = {}, Limits limits = {}) {
  auto made = Template::parse(source, "test");
  if (!made.ok()) return made.error();
  return (*made)->render(context, limits, std::tm{});
}

std::string complaint(std::string_view source, Limits limits = {}) {
  auto text = render(source, {}, limits);
  return text.ok() ? "no error" : text.error().message;
}

// The caller's bytes between braces.
std::string shown(std::string_view source, const Dict& context) {
  auto text = render(source, context);
  if (!text.ok()) return text.error().message;
  std::string out;
  std::size_t done = 0;
  for (const Span& span : text->caller()) {
    out += text->view().substr(done, span.begin - done);
    out += "{" + std::string(text->view().substr(span.begin, span.end - span.begin)) + "}";
    done = span.end;
  }
  return out + std::string(text->view().substr(done));
}

TEST(Template, ErrorsSayWhere) {
  EXPECT_EQ(complaint("a\nb {{ 1 + }}"), "test, line 2, column 10: expected an expression");
  EXPECT_EQ(
      complaint("{% if x %}"),
      "test, line 1, column 11: the template ends where 'elif' or 'else' or 'endif' is missing");
  EXPECT_EQ(complaint("\n\n  {{ a.b }}"), "test, line 3, column 7: 'a' is undefined");
  EXPECT_EQ(complaint("{{ 'a' < 1 }}"),
            "test, line 1, column 8: '<' not supported between instances of 'str' and 'int'");
  EXPECT_EQ(complaint("{{ raise_exception('no system role') }}"), "no system role");
}

TEST(Template, StringsKeepWhoWroteThem) {
  Dict c;
  c.set("x", Text("ab<|e|>", true));
  c.set("l", make_list({Text("p", true), Text("q", true)}));
  c.set("d", from_json(json::parse(R"({"k\"":"v\n","n":5})"), true));
  EXPECT_EQ(shown("[{{ x }}]", c), "[{ab<|e|>}]");
  EXPECT_EQ(shown("{{ '<' + x + '>' }}", c), "<{ab<|e|>}>");
  EXPECT_EQ(shown("{{ x ~ 1 ~ x }}", c), "{ab<|e|>}1{ab<|e|>}");
  EXPECT_EQ(shown("{{ ('-' ~ x ~ '-')[1:4] }}", c), "{ab<}");
  EXPECT_EQ(shown("{{ ('-' ~ x ~ '-')[::-1] }}", c), "-{>|e|<ba}-");
  EXPECT_EQ(shown("{{ x|upper }}{{ x.title() }}{{ (' ' ~ x ~ ' ')|trim }}", c),
            "{AB<|E|>Ab<|E|>ab<|e|>}");
  EXPECT_EQ(shown("{{ x|replace('b', 'TT') }}", c), "{a}TT{<|e|>}");
  EXPECT_EQ(shown("{{ 'a-b'|replace('-', x) }}", c), "a{ab<|e|>}b");
  EXPECT_EQ(shown("{{ l|join(', ') }}{{ l }}", c), "{p}, {q}['{p}', '{q}']");
  EXPECT_EQ(shown("{{ d|tojson }}", c), "{\"{k\\\"}\": \"{v\\n}\", \"{n}\": 5}");
  EXPECT_EQ(shown("{{ '%s|%5s' % (x, l[0]) }}{{ '{}<{}'.format(l[0], 1) }}", c),
            "{ab<|e|>}|    {pp}<1");
  EXPECT_EQ(shown("{{ ('u' ~ x).split('<') }}", c), "['u{ab}', '{|e|>}']");
  EXPECT_EQ(shown("{% set b %}a{{ x }}{% endset %}{{ b[2:4] }}", c), "{b<}");
  EXPECT_EQ(shown("{% macro m(t) %}({{ t }}){% endmacro %}{{ m(x) }}", c), "({ab<|e|>})");
  EXPECT_EQ(shown("{{ ('1\n' ~ l[0])|indent(2) }}", c), "1\n  {p}");
}

// What a long conversation needs when its template gathers all of it in one string, and what none
// does.
TEST(Template, TheDefaultBudgetIsForLongConversations) {
  auto gather = [](int messages) {
    Dict context;
    context.set("x", Text(std::string(2000, 'a'), true));
    return render("{% set ns = namespace(s='') %}{% for i in range(" + std::to_string(messages) +
                      ") %}{% set ns.s = ns.s ~ x %}{% endfor %}{{ ns.s|length }}",
                  context);
  };
  auto text = gather(400);
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(text->view(), "800000");
  auto much = gather(4000);
  ASSERT_FALSE(much.ok());
  EXPECT_EQ(much.error().code, ErrorCode::kTooLarge);
}

TEST(Template, BudgetsHold) {
  Limits small;
  small.steps = 10'000;
  small.output_bytes = 10'000;
  small.created_bytes = 100'000;
  for (const char* source : {
           "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
           "{{ 'a' * 1000000000 }}",
           "{{ [1] * 1000000000 }}",
           "{% set ns = namespace(s='aaaaaaaaaa') %}{% for i in range(40) %}{% set ns.s = ns.s ~ "
           "ns.s "
           "%}{% endfor %}",
           "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
           "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
           "{% for i in range(100) %}{{ 'aaaaaaaaaaaaaaaaaaaa' * 100 }}{% endfor %}",
           "{% set ns = namespace(l=[]) %}{% for i in range(2000) %}{% set ns.l = [ns.l] %}{% "
           "endfor %}",
           "{{ 'a'|center(100000000) }}",
           "{{ 'a'.ljust(99999999999999) }}",
           "{{ 'a\n'|indent(1000000000) }}",
       }) {
    auto text = render(source, {}, small);
    ASSERT_FALSE(text.ok()) << source;
    EXPECT_EQ(text.error().code, ErrorCode::kTooLarge) << source << text.error().message;
  }
  Limits brief;
  brief.time = std::chrono::milliseconds(20);
  auto slow = render(
      "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", {}, brief);
  ASSERT_FALSE(slow.ok());
  EXPECT_EQ(slow.error().code, ErrorCode::kTooLarge);
}

TEST(Template, DeepAndHostileSourcesAreRefused) {
  auto repeat = [](std::string part, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += part;
    return out;
  };
  std::string sources[] = {
      "{{ " + repeat("(", 60000),
      "{{ " + repeat("[", 60000),
      "{{ " + repeat("{1:", 60000),
      "{{ " + repeat("-", 60000) + "1 }}",
      "{{ " + repeat("not ", 60000) + "1 }}",
      "{{ 1" + repeat("+1", 60000) + " }}",
      "{{ 1" + repeat("|abs", 60000) + " }}",
      "{{ a" + repeat(".b", 60000) + " }}",
      "{{ f" + repeat("(1)", 60000) + " }}",
      "{{ 1" + repeat(" if 1 else 1", 60000) + " }}",
      repeat("{% if 1 %}", 60000),
      repeat("{% for a in b %}", 60000),
      "{{ " + repeat("f(", 60000),
      std::string("\xff\xfe{{ 1 }}"),
      "{{ 'a",
      "{{ 99999999999999999999999 }}",
  };
  for (const std::string& source : sources) {
    auto made = Template::parse(source, "test");
    ASSERT_FALSE(made.ok()) << source.substr(0, 20);
    EXPECT_EQ(made.error().code, ErrorCode::kMalformed);
  }
  EXPECT_EQ(Template::parse(std::string(kMaxSourceBytes + 1, 'a'), "t").error().code,
            ErrorCode::kTooLarge);
  EXPECT_TRUE(Template::parse("{{ x" + repeat(" ~ x", 5000) + " }}", "test").ok());
}

TEST(Template, NothingOfTheHostIsReachable) {
  for (const char* source :
       {"{{ ''.__class__.__mro__ }}", "{{ ''|attr('__class__') }}", "{{ [].append(1) }}",
        "{{ {}.update({}) }}", "{{ cycler.__init__.__globals__ }}",
        "{{ '{0.__class__.x}'.format(1) }}", "{{ messages.__getitem__(0) }}",
        "{% import 'os' as os %}", "{% extends 'x' %}"})
    EXPECT_FALSE(render(source).ok()) << source;
}

TEST(Template, ANamespaceMayHoldItself) {
  auto text = render("{% set ns = namespace() %}{% set ns.a = [ns] %}{{ ns.a[0].a|length }}");
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(text->view(), "1");
}

}  // namespace
}  // namespace vitrine::jinja
