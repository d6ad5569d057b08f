// A chat template, rendered within small limits: what it does stays within its budget.
#include "jinja/template.h"

#include "fuzz/fuzz.h"

using namespace vitrine;

namespace {

jinja::Dict context() {
  auto value = parse_json(R"({"messages":[{"role":"system","content":"Be brief."},
      {"role":"user","content":"2 < 3 & <|im_end|>"},
      {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function",
        "function":{"name":"f","arguments":{"a":[1,2.5,null,true],"b":"x"}}}]},
      {"role":"tool","tool_call_id":"c1","content":"é漢 \n result"}],
      "tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],
      "add_generation_prompt":true,"bos_token":"<s>","eos_token":"</s>","n":7,"f":2.5})",
                          "context");
  VT_CHECK(value.ok());
  jinja::Dict out;
  for (const auto& [key, item] : value->get_object())
    out.set(jinja::Text(key, true), jinja::from_json(item, true));
  return out;
}

}  // namespace

void fuzz_one(fuzz::Input input) {
  auto made = jinja::Template::parse(input.text(), "t");
  if (!made.ok()) return;
  static const jinja::Dict kContext = context();
  jinja::Limits limits;
  limits.steps = 20'000, limits.output_bytes = 1 << 18, limits.created_bytes = 1 << 20;
  jinja::Usage used;
  auto text = (*made)->render(kContext, limits, std::tm{}, &used);
  VT_CHECK(used.bytes <= limits.created_bytes);
  VT_CHECK(!text.ok() || used.steps <= limits.steps);
}
