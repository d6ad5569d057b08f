#include "server/request/chat_constraint.h"

#include <algorithm>

#include "server/request/limits.h"

namespace vitrine {
namespace {

using Prelude = ConstraintSpec::Prelude;

bool is_strict(const json::value& tool) {
  const json::value* strict = tool.at("function").as_object().if_contains("strict");
  return strict != nullptr && *strict == true;
}

// The schema of the function's arguments. Where it is not enforced, any object; a function without
// parameters takes an empty object.
json::value arguments_schema(const json::object& function, bool enforced) {
  const json::value* schema = function.if_contains("parameters");
  if (!enforced) return {{"type", "object"}};
  if (schema != nullptr && schema->is_object()) return *schema;
  return {{"type", "object"}, {"properties", json::object{}}, {"additionalProperties", false}};
}

ToolCallSpec::Alternative alternative(const CallSyntax& syntax, std::string_view before,
                                      const json::object& function, bool enforced) {
  std::string name(function.at("name").as_string());
  if (syntax.before_name.ends_with('"')) {
    name = to_json(json::value(name));
    name = name.substr(1, name.size() - 2);
  }
  return {fmt::format("{}{}{}", before, name, syntax.after_name),
          arguments_schema(function, enforced), std::string(syntax.suffix)};
}

// The answer must be tool calls; with `lazy` it is free text until a call begins. `all`: enforce
// the schemas of all functions, not only of strict ones.
ConstraintSpec calls_spec(const ToolChoice& choice, const ChatInput& input, const ChatCall& chat,
                          bool lazy, bool all) {
  const CallSyntax& syntax = chat.format->syntax;
  ConstraintSpec spec{.kind = ConstraintSpec::Kind::kToolCalls, .name = "tools"};
  ToolCallSpec& calls = spec.tools;
  calls.begin = syntax.begin;
  calls.separator = syntax.separator;
  calls.end = syntax.end;
  calls.max_calls = choice.name.empty() && chat.parallel && syntax.several ? kMaxCallsOfAnswer : 1;
  std::string_view before = syntax.before_name;
  if (lazy) {
    calls.lazy = true;
    calls.trigger = syntax.trigger;
    // The trigger may be part of what precedes the name; what comes before it stays free text.
    if (std::size_t at = before.find(syntax.trigger);
        at != before.npos && !syntax.trigger.empty()) {
      calls.begin = syntax.trigger;
      before.remove_prefix(at + syntax.trigger.size());
    }
  }
  for (const json::value& tool : input.tools) {
    const json::object& function = tool.at("function").as_object();
    if (choice.name.empty() || std::string_view(function.at("name").as_string()) == choice.name)
      calls.alternatives.push_back(alternative(syntax, before, function, all || is_strict(tool)));
  }
  return spec;
}

bool is_json(const ConstraintSpec& text) {
  return text.kind == ConstraintSpec::Kind::kJsonObject ||
         text.kind == ConstraintSpec::Kind::kJsonSchema;
}

// What the answer must be; none: free text. With tools and a wanted form, the answer is either
// calls or text of that form.
std::optional<ConstraintSpec> choose_spec(JsonFields& fields, const ToolChoice& choice,
                                          const ChatInput& input,
                                          std::optional<ConstraintSpec> text,
                                          const ChatCall& chat) {
  if (choice.required) {
    if (chat.format == nullptr)
      fields.fail("tool_choice",
                  "how this model writes tool calls is not known from its chat template, so none "
                  "can be required",
                  "unsupported_parameter");
    // JSON forms are dropped: the answer has only calls, and some clients always ask for JSON.
    if (text && !is_json(*text))
      fields.fail("tool_choice", fmt::format("allowed without {} only", text->name));
    if (fields.error()) return std::nullopt;
    return calls_spec(choice, input, chat, false, true);
  }
  if (chat.format == nullptr || input.tools.empty()) return text;
  if (text) {
    ConstraintSpec either = calls_spec(choice, input, chat, false, false);
    either.before_instead = chat.format->reasoning.answer;
    either.instead = std::make_shared<const ConstraintSpec>(std::move(*text));
    return either;
  }
  if (std::none_of(input.tools.begin(), input.tools.end(), is_strict)) return text;
  return calls_spec(choice, input, chat, true, false);
}

std::optional<Prelude> choose_prelude(const ConstraintSpec& spec, const ChatCall& chat,
                                      bool budget) {
  const bool lazy = spec.tools.lazy, calls = spec.kind == ConstraintSpec::Kind::kToolCalls;
  if (reads_reasoning(chat.format)) {
    const ReasoningSyntax& syntax = chat.format->reasoning;
    if (lazy || (calls && !budget)) return std::nullopt;
    Prelude out;
    if (!calls) out.without = syntax.answer;
    if (budget) {
      out.begin = syntax.begin, out.end = syntax.end;
      out.next = std::string(syntax.next) + out.without;
    }
    return out;
  }
  if (chat.tags == nullptr || chat.reasoned || !(chat.in_reasoning || budget || lazy))
    return std::nullopt;
  return Prelude{.begin = chat.tags->begin,
                 .end = chat.tags->end,
                 .inside = chat.in_reasoning,
                 .line_ends = true,
                 .may_end = lazy};
}

ReasoningBudget marks_of_reasoning(const Api& api, const ChatInput& input, const ChatCall& chat,
                                   bool constrained) {
  ReasoningBudget out;
  if (reads_reasoning(chat.format)) {
    const ReasoningSyntax& syntax = chat.format->reasoning;
    auto ids = [&](std::string_view text) {
      return api.tokenizer->encode(text, {.add_special = false, .parse_special = true});
    };
    out.begin = ids(syntax.begin);
    // With tools or a constraint, the text after the reasoning may be something else than the
    // answer.
    std::string end = std::string(syntax.end) + std::string(syntax.next);
    if (input.tools.empty() && !constrained) end += syntax.answer;
    out.end = ids(end);
    out.closing = static_cast<int>(ids(syntax.end).size());
    out.repeats = true;
  } else if (chat.tags != nullptr) {
    out.begin = api.chat->reasoning_begin();
    out.end = api.chat->reasoning_end();
    out.inside = chat.in_reasoning;
  }
  return out;
}

void limit_reasoning(const Api& api, JsonFields& fields, const ChatInput& input,
                     const ChatCall& chat, std::int64_t tokens, Request& request) {
  ReasoningBudget budget = marks_of_reasoning(api, input, chat, request.constraint != nullptr);
  budget.tokens = static_cast<int>(tokens);
  auto usable = [&](const std::vector<std::int32_t>& ids) {
    return !ids.empty() &&
           std::all_of(ids.begin(), ids.end(), [&](std::int32_t id) { return id < api.vocab; });
  };
  if (!usable(budget.begin) || !usable(budget.end))
    return fields.fail("reasoning_budget",
                       "this model's chat template marks no reasoning that could be ended",
                       "unsupported_parameter");
  request.reasoning = std::move(budget);
}

// Errors begin with the name of what they are about.
const std::string& field_at_fault(const ConstraintSpec& spec, const Error& error) {
  const bool instead = spec.instead && error.message.starts_with(spec.instead->name);
  return instead ? spec.instead->name : spec.name;
}

}  // namespace

void constrain_chat(const Api& api, JsonFields& fields, const ToolChoice& choice,
                    const ChatInput& input, std::optional<ConstraintSpec> text,
                    const ChatCall& chat, Request& request) {
  auto budget = fields.clamped("reasoning_budget", 0, api.context);
  auto spec = choose_spec(fields, choice, input, std::move(text), chat);
  if (fields.error()) return;
  if (spec) {
    spec->prelude = choose_prelude(*spec, chat, budget.has_value());
    if (spec->prelude || spec->kind == ConstraintSpec::Kind::kToolCalls)
      for (std::int32_t id : chat.shown)
        spec->spelled_tokens.emplace_back(id, api.tokenizer->piece(id));
    auto made = api.constraints.compile(api.tokenizer, *spec, api.scope(request.tenant));
    if (!made.ok())
      return fields.fail(bad_field(field_at_fault(*spec, made.error()), made.error().message));
    request.constraint = std::move(*made);
  }
  if (budget) limit_reasoning(api, fields, input, chat, *budget, request);
}

}  // namespace vitrine
