// What a mask costs on a vocabulary of 128,256 tokens: percentiles over the steps of random texts
// under a constraint, in the thread's own time. "first": a constraint that was just compiled;
// "kept": the same one later.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <ctime>
#include <random>

#include "base/json.h"
#include "grammar/compiler.h"
#include "grammar/test_vocabulary.h"

namespace vitrine::grammar {
namespace {

ConstraintCompiler& compiler() {
  static ConstraintCompiler made(test::made_up_vocabulary(128256));
  return made;
}

ConstraintSpec person(int variant) {
  auto schema = parse_json(
      fmt::format(R"({{"type":"object","properties":{{"id{}":{{"type":"integer","minimum":1}},
          "name":{{"type":"string","maxLength":80}},"email":{{"type":"string","format":"email"}},
          "notes":{{"type":"string"}},"tags":{{"type":"array","items":{{"type":"string"}},"maxItems":8}},
          "kind":{{"enum":["customer","supplier","partner"]}},
          "address":{{"type":"object","properties":{{"street":{{"type":"string"}},"zip":{{"type":"string","pattern":"^[0-9]{{5}}$"}}}},
                      "required":["street","zip"],"additionalProperties":false}}}},
          "required":["name","kind","address"],"additionalProperties":false}})",
                  variant),
      "bench");
  return {.kind = ConstraintSpec::Kind::kJsonSchema, .schema = *schema};
}

ConstraintSpec any_json(int variant) {
  auto schema = parse_json(fmt::format(R"({{"type":"object","title":"{}"}})", variant), "bench");
  return {.kind = ConstraintSpec::Kind::kJsonSchema, .schema = *schema};
}

ConstraintSpec arithmetic(int variant) {
  return {.kind = ConstraintSpec::Kind::kGrammar,
          .text = fmt::format(
              "# {}\nroot ::= expr\nexpr ::= term ([-+*/] term)*\n"
              "term ::= [0-9]+ | name | \"(\" expr \")\"\nname ::= [a-z]+ (\".\" [a-z]+)*\n",
              variant)};
}

// A small programming language: many rules, deep stacks, names that border on keywords.
ConstraintSpec program(int variant) {
  return {.kind = ConstraintSpec::Kind::kGrammar, .text = fmt::format("# {}\n", variant) + R"gbnf(
root ::= ws function+
function ::= type ws1 name "(" ws (param ("," ws param)*)? ")" ws block
param ::= type ws1 name ws
type ::= "int" | "float" | "string" | "bool" | "void" | name ("<" type ("," type)* ">")?
block ::= "{" ws statement* "}" ws
statement ::= block | if | while | for | return | declaration | expression ";" ws | comment
if ::= "if" ws "(" ws expression ")" ws statement ("else" ws1 statement)?
while ::= "while" ws "(" ws expression ")" ws statement
for ::= "for" ws "(" ws (expression)? ";" ws (expression)? ";" ws (expression)? ")" ws statement
return ::= "return" (ws1 expression)? ws ";" ws
declaration ::= type ws1 name ws ("=" ws expression)? ";" ws
expression ::= or (ws "=" ws expression)?
or ::= and (ws "||" ws and)*
and ::= compare (ws "&&" ws compare)*
compare ::= sum (ws ("==" | "!=" | "<=" | ">=" | "<" | ">") ws sum)*
sum ::= product (ws [-+] ws product)*
product ::= unary (ws [*/%] ws unary)*
unary ::= [-!]? postfix
postfix ::= atom ("(" ws (expression ("," ws expression)*)? ")" | "[" ws expression "]" | "." name)*
atom ::= number | text | name | "(" ws expression ")" | "true" | "false" | "null"
name ::= [a-zA-Z_] [a-zA-Z0-9_]{0,40}
number ::= [0-9]{1,18} ("." [0-9]{1,18})? ([eE] [-+]? [0-9]{1,3})?
text ::= "\"" ([^"\\\x00-\x1f] | "\\" ["\\nrt])* "\""
comment ::= "//" [^\n]* "\n" ws
ws ::= [ \t\n]{0,20}
ws1 ::= [ \t\n]{1,20}
)gbnf"};
}

// Of this thread only: others that share the core are not the mask's cost.
double thread_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

// One text: the time of each mask, in microseconds.
void generate(const std::shared_ptr<const Constraint>& constraint, std::mt19937& rng,
              std::vector<double>& times) {
  ConstraintMatcher matcher(constraint);
  const int vocab = constraint->trie().vocab();
  for (int step = 0; step < 100; ++step) {
    const double start = thread_us();
    auto mask = matcher.mask();
    times.push_back(thread_us() - start);
    if (!mask->any) break;
    // Half of the time the next token that is allowed, else a short one: models close what they
    // open.
    auto id = static_cast<std::int32_t>(rng() % (rng() % 2 ? vocab : 256));
    while (!mask->test(id)) id = (id + 1) % vocab;
    matcher.accept(id);
  }
}

using MakeSpec = ConstraintSpec (*)(int variant);

void report(benchmark::State& state, std::vector<double>& times) {
  std::sort(times.begin(), times.end());
  auto at = [&](double p) {
    return times[static_cast<std::size_t>(p * static_cast<double>(times.size() - 1))];
  };
  state.counters["p50_us"] = at(0.5);
  state.counters["p99_us"] = at(0.99);
  state.counters["p99.9_us"] = at(0.999);
  state.counters["max_us"] = times.back();
  state.counters["masks"] = static_cast<double>(times.size());
}

void first_masks(benchmark::State& state, MakeSpec make) {
  std::mt19937 rng(1);
  std::vector<double> times;
  int variant = 0;
  for (auto _ : state) {
    state.PauseTiming();
    auto constraint = *compiler().compile(make(++variant));
    state.ResumeTiming();
    for (int i = 0; i < 4; ++i) generate(constraint, rng, times);
  }
  report(state, times);
}

void kept_masks(benchmark::State& state, MakeSpec make) {
  std::mt19937 rng(1);
  std::vector<double> times;
  auto constraint = *compiler().compile(make(0));
  for (int i = 0; i < 50; ++i) generate(constraint, rng, times);
  times.clear();
  for (auto _ : state) generate(constraint, rng, times);
  report(state, times);
}

void compile(benchmark::State& state, MakeSpec make) {
  compiler();
  int variant = 1 << 20;
  for (auto _ : state) benchmark::DoNotOptimize(compiler().compile(make(++variant)));
}

BENCHMARK_CAPTURE(first_masks, schema, person)->Unit(benchmark::kMillisecond)->Iterations(20);
BENCHMARK_CAPTURE(first_masks, any_json, any_json)->Unit(benchmark::kMillisecond)->Iterations(20);
BENCHMARK_CAPTURE(first_masks, grammar, arithmetic)->Unit(benchmark::kMillisecond)->Iterations(20);
BENCHMARK_CAPTURE(first_masks, program, program)->Unit(benchmark::kMillisecond)->Iterations(20);
BENCHMARK_CAPTURE(kept_masks, program, program)->Unit(benchmark::kMillisecond)->Iterations(100);
BENCHMARK_CAPTURE(kept_masks, schema, person)->Unit(benchmark::kMillisecond)->Iterations(100);
BENCHMARK_CAPTURE(kept_masks, any_json, any_json)->Unit(benchmark::kMillisecond)->Iterations(100);
BENCHMARK_CAPTURE(kept_masks, grammar, arithmetic)->Unit(benchmark::kMillisecond)->Iterations(100);
BENCHMARK_CAPTURE(compile, schema, person)->Unit(benchmark::kMillisecond)->Iterations(20);
BENCHMARK_CAPTURE(compile, any_json, any_json)->Unit(benchmark::kMillisecond)->Iterations(20);
BENCHMARK_CAPTURE(compile, program, program)->Unit(benchmark::kMillisecond)->Iterations(20);

}  // namespace
}  // namespace vitrine::grammar
