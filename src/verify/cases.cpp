#include "verify/cases.h"

#include <algorithm>
#include <random>

#include "base/check.h"
#include "base/json.h"

namespace vitrine::verify {
namespace {

using Random = std::mt19937_64;

int below(Random& random, int n) {
  return static_cast<int>(random() % static_cast<std::uint64_t>(std::max(n, 1)));
}

// How tokens are drawn. Those with `bias` say what they are told to, so that guesses about them come true: always
// (one token) or about half of the time (two).
struct Kind {
  const char* name;
  std::vector<std::pair<const char*, double>> params;
  int bias = 0;
  bool constrained = false;
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> kAll = {
      {"greedy", {{"temperature", 0}}},
      {"one token again and again", {{"temperature", 1}}, 1},
      {"temperature 1", {{"temperature", 1}}},
      {"two tokens by turns", {{"temperature", 1}}, 2},
      {"constrained", {{"temperature", 0.8}}, 0, true},
      {"penalties",
       {{"temperature", 0.9},
        {"repetition_penalty", 1.2},
        {"frequency_penalty", 0.3},
        {"presence_penalty", 0.2}}},
      {"top_k and top_p", {{"temperature", 0.7}, {"top_k", 40}, {"top_p", 0.9}}},
      {"min_p", {{"temperature", 1.5}, {"min_p", 0.05}}},
      {"dry", {{"temperature", 0}, {"dry_multiplier", 0.8}}},
      {"mirostat", {{"temperature", 1}, {"mirostat", 2}}},
      {"constrained greedily", {{"temperature", 0}}, 0, true},
      {"xtc", {{"temperature", 1}, {"xtc_probability", 0.5}, {"xtc_threshold", 0.05}}},
      {"no n-gram twice", {{"temperature", 0}, {"no_repeat_ngram_size", 3}}},
      {"typical", {{"temperature", 1.2}, {"typical_p", 0.8}}},
      {"dynamic temperature", {{"temperature", 0.8}, {"dynatemp_range", 0.6}}},
      {"adaptive_p", {{"temperature", 1}, {"min_p", 0.02}, {"adaptive_target", 0.3}}},
      {"top_n_sigma", {{"temperature", 1}, {"top_n_sigma", 1}}},
  };
  return kAll;
}

// Prompts around the borders of pages and chunks, and long ones, so that a pool for little more than one sequence
// is too small for several.
int prompt_length(const CaseRoom& room, int number, Random& random) {
  const int page = room.page_size, chunk = room.chunk, most = room.context - room.max_tokens;
  const int lengths[] = {2 * page + 1, most,     page,     room.context / 2, page + 1,
                         chunk,        page - 1, 1,        most * 3 / 4,     chunk + 1,
                         2 * page,     2,        chunk - 1};
  const auto n = static_cast<int>(std::size(lengths));
  const int at = number % (n + 2);
  return std::clamp(at < n ? lengths[at] : 1 + below(random, most), 1, most);
}

std::vector<std::int32_t> prompt(const CaseRoom& room, int number, int length, Random& random) {
  std::vector<std::int32_t> out(static_cast<std::size_t>(length));
  const auto text = static_cast<int>(room.text.size());
  int from = 0, kind = number % 3;
  if (kind == 0 && text == 0) kind = 1;
  if (kind == 0) from = below(random, text);
  for (int i = 0; i < length; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (kind == 0)
      out[at] = room.text[static_cast<std::size_t>((from + i) % text)];
    else if (kind == 2 && i >= 7)
      out[at] = out[at - 7];  // goes round
    else
      out[at] = below(random, room.vocab);
  }
  return out;
}

void set(Request& r, const char* name, double value) {
  const Status status = r.sampling.set(name, value);
  VT_CHECK(status.ok(), "{}", status.error().message);
}

void add_sampling(const CaseRoom& room, Request& r, const Kind& kind, Random& random) {
  for (const auto& [name, value] : kind.params) set(r, name, value);
  r.sampling.set_seed(random());
  if (kind.constrained && !room.constraints.empty())
    r.constraint = room.constraints[random() % room.constraints.size()];
  std::vector<LogitBias> biases;
  for (int i = 0; i < kind.bias; ++i)
    biases.push_back({(below(random, room.vocab / 2) * 2 + i) % room.vocab, BiasTable::kMaxBias});
  const Status status = r.sampling.set_logit_bias(std::move(biases));
  VT_CHECK(status.ok(), "{}", status.error().message);
}

// What ends a text, or bends it.
void add_limits(const CaseRoom& room, Request& r, const Kind& kind, int number, Random& random) {
  const auto token = [&] { return below(random, room.vocab); };
  r.max_tokens = std::max(1, room.max_tokens - number % 5);
  r.ignore_eos = number % 2 == 0 && !r.constraint;
  if (number % 7 == 5)
    for (int i = 0; i < 3; ++i) r.stop_token_ids.push_back(token());
  if (number % 9 == 4) r.min_tokens = std::min(5, *r.max_tokens);
  if (number % 8 == 7) r.repetition = RepetitionEnd{.least = 2, .most = 6, .count = 3};
  if (number % 6 == 3 && !r.constraint && kind.bias == 0)
    r.reasoning = ReasoningBudget{
        .tokens = 3 + number % 5, .begin = {token()}, .end = {token(), token()}, .inside = true};
}

// What is told of it.
void add_reports(Request& r, int number) {
  r.logprobs = number % 2 == 0;
  r.top_logprobs = number % 4 == 0 ? 4 : 0;
  r.prompt_logprobs = number % 10 == 9;
  if (number >= kWithLogits) return;
  const auto length = static_cast<int>(r.prompt.size());
  r.logit_positions = {length - 1};
  // Only the first choice is told of rows before the last.
  if (number % 3 == 1 && length > 4 && r.choices == 1)
    r.logit_positions = {length * 3 / 4, length - 2, length - 1};
}

}  // namespace

int least_context(const CaseRoom& room) { return room.max_tokens + 2 * room.page_size; }

const char* sample_text() {
  return "The harbour lies to the north of the town. In the morning the boats come in, one after "
         "the "
         "other, and the men carry the baskets up the stairs.\n\n| boat | baskets | since |\n| --- "
         "| "
         "--- | --- |\n| Hope | 12 | 1871 |\n| Gull | 9 | 1880 |\n| Anna | 12 | 1871 |\n\nThe same "
         "in "
         "another form: [{\"boat\": \"Hope\", \"baskets\": 12}, {\"boat\": \"Gull\", \"baskets\": "
         "9}].\nint sum(int a, int b) { return a + b; }\nNobody asked why. The harbour lies to the "
         "north "
         "of the town, and in the morning the boats come in.\n";
}

std::vector<ConstraintSpec> sample_constraints() {
  using Kind = ConstraintSpec::Kind;
  const auto form = json::parse(R"({"type": "object", "properties": {
    "name": {"type": "string", "maxLength": 12}, "count": {"type": "integer", "minimum": 0, "maximum": 999},
    "list": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "minItems": 2, "maxItems": 5}},
    "required": ["name", "count", "list"], "additionalProperties": false})");
  return {{.kind = Kind::kJsonSchema, .schema = form, .name = "a schema of this program"},
          {.kind = Kind::kRegex,
           .text = "(yes|no)(, (yes|no)){3,12}\\.",
           .name = "a regular expression of this program"}};
}

Case make_case(const CaseRoom& room, std::uint64_t seed, int number) {
  VT_CHECK(room.vocab > 0 && room.max_tokens > 0 && room.context > room.max_tokens, "{} {} {}",
           room.vocab, room.max_tokens, room.context);
  Random random(seed * 0x9E3779B97F4A7C15u + static_cast<std::uint64_t>(number));
  const Kind& kind = kinds()[static_cast<std::size_t>(number) % kinds().size()];
  Case out{.number = number, .what = kind.name, .request = {}};
  Request& r = out.request;
  const int length = prompt_length(room, number, random);
  r.prompt = prompt(room, number, length, random);
  add_sampling(room, r, kind, random);
  add_limits(room, r, kind, number, random);
  if (number % 4 == 2) r.choices = 2 + number / 4 % (kMostChoices - 1);
  add_reports(r, number);
  r.cache_salt = "verify";
  out.what += fmt::format(", prompt of {}", length);
  if (r.choices > 1) out.what += fmt::format(", {} choices", r.choices);
  return out;
}

}  // namespace vitrine::verify
