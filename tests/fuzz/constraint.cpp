// A grammar, a regular expression, a JSON schema or a list of choices, and an answer under it: refused,
// or every state has a way on.
#include "base/json.h"
#include "fuzz/fuzz.h"
#include "grammar/compiler.h"

using namespace vitrine;

namespace {

std::vector<std::string> pieces() {
  std::vector<std::string> out;
  for (int b = 0; b < 256; ++b) out.emplace_back(1, static_cast<char>(b));
  for (const char* word : {"true", "null", "\":", "{\"", "  ", "é", "ab", "12"})
    out.emplace_back(word);
  return out;
}

}  // namespace

void fuzz_one(fuzz::Input input) {
  using Kind = ConstraintSpec::Kind;
  const std::uint8_t choice = input.take();
  ConstraintSpec spec;
  spec.any_order = (choice & 4) != 0;
  const std::string_view text = input.text();
  switch (choice % 4) {
    case 0:
      spec.kind = Kind::kGrammar, spec.text = text;
      break;
    case 1:
      spec.kind = Kind::kRegex, spec.text = text;
      break;
    case 2: {
      auto parsed = parse_json(text, "schema");
      if (!parsed.ok()) return;
      spec.kind = Kind::kJsonSchema, spec.schema = std::move(*parsed);
      break;
    }
    default:
      spec.kind = Kind::kChoice;
      for (std::size_t at = 0; at <= text.size();) {
        std::size_t end = std::min(text.find('\n', at), text.size());
        spec.choices.emplace_back(text.substr(at, end - at));
        at = end + 1;
      }
  }
  static const auto kTrie = std::make_shared<const grammar::TokenTrie>(pieces());
  // Of what a compilation may cost a part, so that large ones do not take all of the time.
  auto machine = compile_machine(spec, {.work = 1 << 16, .states = 1 << 12});
  if (!machine.ok()) return;
  ConstraintMatcher matcher(std::make_shared<const Constraint>(
      std::move(*machine), kTrie, grammar::make_mask_store(), spec.spelled_tokens));
  std::uint32_t random = choice;
  for (int step = 0; step < 24; ++step) {
    auto mask = matcher.mask();
    VT_CHECK(mask->any || matcher.may_end());
    if (!mask->any) break;
    random = random * 1664525 + 1013904223;
    auto id = static_cast<std::int32_t>((random >> 16) % 264);
    while (!mask->test(id)) id = (id + 1) % 264;
    VT_CHECK(matcher.accept(id));
  }
}
