#include "jinja/template.h"

#include <gtest/gtest.h>

#include <ctime>

#include "support/allocation_count.h"

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
           "{{ 'a'|map(*(['map'] * 9000)) }}",
           "{{ '\n' * 9000 ~ ('\n' * 9000).splitlines() }}",
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

TEST(Template, PathsOfFormatsAndNamesOfArgumentsAreCharged) {
  Limits limits;
  limits.steps = 200'000, limits.created_bytes = 4 << 20;
  for (const char* source :
       {"{% set ns = namespace() %}{% set ns.s = ns %}{% set f = '{0' ~ '.s' * 100000 ~ '}' %}"
        "{% for i in range(1000) %}{{ f.format(ns) }}{% endfor %}",
        "{% set f = '%d' ~ 'x' * 100000 %}{% for i in range(1000) %}{% set v = f|length %}"
        "{% set w = f % 1 %}{% endfor %}",
        "{% set k = 'a' * 100000 %}{{ range(1000)|select('defined', **{k: 1})|list }}",
        "{% set k = 'a' * 100000 %}{{ range(1000)|map('string', **{k: 1})|list }}"}) {
    auto text = render(source, {}, limits);
    ASSERT_FALSE(text.ok()) << source;
    EXPECT_EQ(text.error().code, ErrorCode::kTooLarge) << source << text.error().message;
  }
  // An argument without a name is not a positional one that never ends.
  for (const char* source : {"{{ 'x'|format(**{'': 1}) }}", "{{ [1]|select(**{'': 'defined'}) }}",
                             "{{ [1]|map(**{'': 'string'})|list }}"}) {
    Usage used;
    (void)(*Template::parse(source, "t"))->render({}, limits, std::tm{}, &used);
    EXPECT_LT(used.steps, 1000) << source;
  }
}

// Ten lists inside each other, each ten times in the next: small to make, endless to walk.
TEST(Template, WalksOverSharedValuesAreCharged) {
  const std::string make =
      "{% set ns = namespace(a=[1], b=[1], t=(1,), u=(1,)) %}{% for i in range(11) %}"
      "{% set ns.a = [ns.a] * 10 %}{% set ns.b = [ns.b] * 10 %}"
      "{% set ns.t = (ns.t,) * 10 %}{% set ns.u = (ns.u,) * 10 %}{% endfor %}";
  Limits limits;
  limits.steps = 100'000;
  for (const char* use : {"ns.a == ns.b",
                          "ns.a != ns.b",
                          "ns.a < ns.b",
                          "ns.a in [ns.b]",
                          "ns.a is eq(ns.b)",
                          "[ns.b].index(ns.a)",
                          "[ns.b].count(ns.a)",
                          "[ns.a, ns.b]|sort",
                          "[ns.a, ns.b]|min",
                          "[{'k': ns.a}, {'k': ns.b}]|groupby('k')",
                          "{'k': ns.a} == {'k': ns.b}",
                          "ns.a",
                          "ns.a ~ 1",
                          "[ns.a]|join",
                          "ns.a|string",
                          "ns.a|tojson",
                          "ns.a|upper",
                          "'%s' % ns.a",
                          "'%r' % ns.a",
                          "'{}'.format(ns.a)",
                          "ns.a|wordcount",
                          "ns.a is upper",
                          "{ns.t: 1}",
                          "{}[ns.t]",
                          "ns.t in {}",
                          "{}.get(ns.t)",
                          "[ns.t]|unique|list",
                          "dict([(ns.t, 1)])",
                          "dict([(1, 2)])[ns.t]",
                          "raise_exception(ns.a)",
                          "ns.a|replace(ns.b, 1)"}) {
    auto text = render(make + "{{ " + use + " }}", {}, limits);
    ASSERT_FALSE(text.ok()) << use;
    EXPECT_EQ(text.error().code, ErrorCode::kTooLarge) << use << text.error().message;
  }
}

// By what they allocate, which is what made them slow.
TEST(Template, TextsAreNotCopiedForEachOfTheirParts) {
  constexpr std::size_t kWords = 20'000;
  std::string words;
  for (std::size_t i = 0; i < kWords; ++i) words += "ab ";
  Dict context;
  context.set("x", Text(words, true));
  for (const char* use :
       {"x.split()", "x.rsplit()", "x.split(' ')", "x.rsplit(' ')", "x.splitlines()",
        "x.replace('a', 'b')", "x|upper", "x[::2]", "x.count('a')", "x.rfind('b')", "x|indent",
        "[x, x]|tojson", "[x]", "x|list"}) {
    std::size_t before = allocated_bytes();
    auto text = render(std::string("{% set y = ") + use + " %}", context);
    ASSERT_TRUE(text.ok()) << use << text.error().message;
    EXPECT_LT(allocated_bytes() - before, 40'000 + 400 * words.size()) << use;
  }
}

TEST(Template, UsageIsReported) {
  auto made = Template::parse("{{ 'a' * 1000 }}", "test");
  ASSERT_TRUE(made.ok());
  Usage used;
  ASSERT_TRUE((*made)->render({}, Limits{}, std::tm{}, &used).ok());
  EXPECT_GT(used.steps, 1000);
  EXPECT_GT(used.bytes, 2000u);
  EXPECT_LT(used.bytes, 4000u);
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
      "{{ [" + repeat("1,", 200000) + "] }}",
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
