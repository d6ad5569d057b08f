// Random templates over values that make careless operations slow: what a render does stays in
// proportion to what it was charged for, and that stays within its limits.
#include <gtest/gtest.h>

#include <random>

#include "jinja/template.h"
#include "support/allocation_count.h"

namespace vitrine::jinja {
namespace {

constexpr int kCases = 3000;

// Writes one template; the same seed writes the same.
class Writer {
 public:
  explicit Writer(unsigned seed) : random_(seed) {}

  std::string write() {
    std::string out = "{% set ns = namespace(a=[1], b=[1], t=(1,)) %}{% set ns.s = ns %}";
    if (chance(3)) {  // lists inside each other that share their items
      const char* name = chance(2) ? "t" : "a";
      out += fmt::format(
          "{{% for i in range({}) %}}{{% set ns.{} = {} %}}{{% set ns.b = [ns.b] * 10 %}}"
          "{{% endfor %}}",
          below(12), name, name[0] == 't' ? "(ns.t, ns.t, ns.t)" : "[ns.a] * 10");
    }
    for (unsigned i = 1 + below(5); i > 0; --i) out += statement(3);
    return out;
  }

 private:
  unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }
  bool chance(unsigned one_in) { return below(one_in) == 0; }
  template <std::size_t kCount>
  std::string among(const char* const (&list)[kCount]) {
    return list[below(kCount)];
  }

  std::string statement(int depth) {
    std::string e = expr(3), body = depth > 0 ? statement(depth - 1) : "text";
    switch (below(depth > 0 ? 11 : 4)) {
      case 0:
        return "{% set v = " + e + " %}";
      case 1:
        return "{% set ns." + among({"a", "b", "t"}) + " = " + e + " %}";
      case 2:
      case 3:
        return "{{ " + e + " }}";
      case 4:
        return "{% for i in " + e + (chance(3) ? " if " + expr(1) : "") + " %}" + body +
               "{% endfor %}";
      case 5:
        return "{% for i in " + e + " recursive %}" + body + "{{ loop(i) }}{% endfor %}";
      case 6:
        return "{% if " + e + " %}" + body + "{% else %}" + statement(depth - 1) + "{% endif %}";
      case 7:
        return "{% macro f(p, q=1) %}" + body + "{{ kwargs }}{{ varargs }}{% endmacro %}{{ f(" + e +
               ") }}";
      case 8:
        return "{% set v %}" + body + body + "{% endset %}";
      case 9:
        return "{% filter " + filter() + " %}" + body + "{% endfilter %}";
      default:
        return "{% macro g() %}{{ caller() }}{{ caller() }}{% endmacro %}{% call g() %}" + body +
               "{% endcall %}";
    }
  }

  std::string filter() {
    std::string name = among(
        {"default",  "tojson", "int",       "float",  "round",       "abs",        "sum",
         "trim",     "upper",  "lower",     "title",  "string",      "safe",       "escape",
         "replace",  "indent", "wordcount", "center", "format",      "capitalize", "truncate",
         "length",   "list",   "first",     "last",   "join",        "items",      "reverse",
         "dictsort", "sort",   "unique",    "min",    "max",         "batch",      "slice",
         "groupby",  "map",    "select",    "reject", "forceescape", "selectattr", "rejectattr"});
    switch (below(7)) {
      case 0:
        return name;
      case 1:
        return name + "(" + expr(1) + ")";
      case 2:
        return name + "(" + expr(1) + ", " + expr(1) + ")";
      case 3:
        return name + "(attribute=" + expr(0) + ")";
      case 4:
        return name + "('" +
               among({"upper", "map", "list", "string", "in", "eq", "lt", "defined"}) + "', " +
               expr(0) + ")";
      case 5:
        return name + "(**{" + among({"''", "xs", "x", "'attribute'"}) + ": " + expr(1) + "})";
      default:
        return name + "(*(['map'] * " + std::to_string(below(2000)) + "))";
    }
  }

  std::string method() {
    std::string name = among(
        {"strip",      "lstrip",     "split",    "rsplit",       "partition",    "rpartition",
         "splitlines", "startswith", "endswith", "find",         "rfind",        "index",
         "count",      "replace",    "join",     "removeprefix", "removesuffix", "ljust",
         "center",     "zfill",      "format",   "upper",        "title",        "isspace",
         "isupper",    "get",        "items",    "keys",         "values",       "copy",
         "rstrip",     "rindex",     "rjust",    "lower",        "casefold",     "capitalize",
         "swapcase",   "isalpha",    "isdigit",  "isalnum",      "islower",      "isnumeric"});
    switch (below(4)) {
      case 0:
        return name + "()";
      case 1:
        return name + "(" + expr(1) + ")";
      case 2:
        return name + "(*" + expr(0) + ", **" + expr(0) + ")";
      default:
        return name + "(" + expr(1) + ", " + expr(1) + ")";
    }
  }

  std::string expr(int depth) {
    if (depth == 0 || chance(4))
      return among({"x",     "y",          "xs",       "words",      "lines",
                    "u",     "l",          "d",        "n",          "ns.a",
                    "ns.b",  "ns.t",       "ns",       "v",          "i",
                    "loop",  "1",          "0",        "-1",         "7",
                    "50000", "1000000000", "2.5",      "''",         "'a'",
                    "'aab'", "' '",        "'%s %5d'", "'{} {:>9}'", "('{0' ~ '.s' * 50000 ~ '}')",
                    "true",  "none",       "[]",       "{}"});
    std::string a = expr(depth - 1);
    switch (below(13)) {
      case 0:
      case 1:
        return "(" + a + ")|" + filter();
      case 2:
      case 3:
        return "(" + a + ")." + method();
      case 4:
        return "(" + a + " " +
               among({"+", "-", "*", "//", "%", "~", "and", "or", "==", "!=", "<", ">="}) + " " +
               expr(depth - 1) + ")";
      case 5:
        return "(" + a + (chance(2) ? " in " : " == ") + expr(depth - 1) + ")";
      case 6:
        return "(" + a + ")[" + expr(depth - 1) + "]";
      case 7:
        return "(" + a + ")[" + (chance(2) ? expr(0) : "") + ":" + (chance(2) ? expr(0) : "") +
               (chance(2) ? ":" + expr(0) : "") + "]";
      case 8:
        return "[" + a + ", " + expr(depth - 1) + "]";
      case 9:
        return "{" + a + ": " + expr(depth - 1) + "}";
      case 10:
        return "((" + a + ") is " +
               among({"defined", "string", "upper", "lower", "in(l)", "eq(ns.b)", "lt(y)", "odd"}) +
               ")";
      case 11:
        return among({"range", "dict", "namespace", "cycler", "joiner", "f", "g"}) +
               (chance(2) ? "(" : "(**") + a + ")";
      default:
        return "(" + a + ", " + a + ")";
    }
  }

  std::mt19937 random_;
};

Dict context() {
  auto repeat = [](std::string part, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += part;
    return Text(out, true);
  };
  Dict out;
  out.set("x", repeat("a", 200'000));
  Text y = repeat("a", 100'000);
  y.append("b");
  out.set("y", y);
  out.set("xs", repeat("a<", 2'000));
  out.set("words", repeat("w ", 20'000));
  out.set("lines", repeat("\n", 20'000));
  out.set("u", repeat("é漢", 10'000));
  std::vector<Value> list;
  Dict dict;
  for (int i = 0; i < 1000; ++i) {
    list.emplace_back(i * 37 % 1000);
    dict.set(Text(fmt::format("key{}", i), true), i % 3 == 0 ? Value("a") : Value(i));
  }
  out.set("l", make_list(std::move(list)));
  out.set("d", make_dict(std::move(dict)));
  Value nested(1);
  for (int i = 0; i < 60; ++i) nested = make_list({nested, nested});
  out.set("n", nested);
  return out;
}

TEST(Fuzz, WorkAndMemoryFollowTheBudget) {
  Limits limits;
  limits.steps = 100'000;
  limits.output_bytes = 1 << 20;
  limits.created_bytes = 4 << 20;
  const Dict values = context();
  // A message of an error may have a few copies of a text in it: 2 MB.
  int rendered = 0, refused = 0;
  double worst_peak = 0, worst_calls = 0;
  for (unsigned seed = 0; seed < kCases; ++seed) {
    std::string source = Writer(seed).write();
    auto made = Template::parse(source, "fuzz");
    ASSERT_TRUE(made.ok()) << source << "\n" << made.error().message;
    Usage used;
    reset_peak_bytes();
    std::size_t calls = allocation_count(), bytes = allocated_bytes();
    auto text = (*made)->render(values, limits, std::tm{}, &used);
    calls = allocation_count() - calls, bytes = allocated_bytes() - bytes;
    rendered += text.ok();
    refused += !text.ok() && text.error().code == ErrorCode::kTooLarge;
    auto steps = static_cast<double>(used.steps), created = static_cast<double>(used.bytes);
    // Beyond the limits goes only the charge that fails.
    EXPECT_LE(used.bytes, limits.created_bytes) << source;
    if (text.ok()) {
      EXPECT_LE(used.steps, limits.steps) << source;
    }
    EXPECT_LE(static_cast<double>(calls), 100 + 8 * steps) << source;
    EXPECT_LE(static_cast<double>(bytes), 2e6 + 500 * steps + 8 * created) << source;
    EXPECT_LE(static_cast<double>(peak_bytes()), 2e6 + 4 * created) << source;
    worst_peak = std::max(worst_peak, static_cast<double>(peak_bytes()) / (2e6 + created));
    worst_calls = std::max(worst_calls, static_cast<double>(calls) / (100 + steps));
  }
  RecordProperty("worst", fmt::format("{} peak, {} calls", worst_peak, worst_calls));
  // The templates reach both ends.
  EXPECT_GT(rendered, kCases / 100);
  EXPECT_GT(refused, kCases / 100);
}

}  // namespace
}  // namespace vitrine::jinja
