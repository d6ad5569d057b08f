#include "server/request/prompt_fields.h"

#include <algorithm>
#include <cmath>

#include "server/answer/trace_context.h"
#include "server/request/limits.h"
#include "tokenizer/tokenizer.h"

namespace vitrine {
namespace {

// One prompt: text or ids.
void read_prompt(const Api& api, JsonFields& fields, const PromptField& field,
                 const json::value& value, const std::string& name, Prompts& out) {
  if (value.is_string()) {
    std::string_view text = value.get_string();
    if (api.tokenizer == nullptr)
      return fields.fail(name, "found text, allowed token ids: the model has no tokenizer");
    if (text.empty() && !field.may_be_empty)
      return fields.fail(name, "found an empty string, allowed text");
    out.ids.push_back(api.tokenizer->encode(text));
    if (field.keep_text) out.texts.emplace_back(text);
    return;
  }
  auto& ids = out.ids.emplace_back();
  if (auto error = read_ids(value.get_array(), name, api.vocab, ids))
    return fields.fail(std::move(*error));
  // A prompt over the context is refused later; its text may be many times the request.
  const bool decode = api.tokenizer && ids.size() <= static_cast<std::size_t>(api.context);
  if (field.keep_text) out.texts.push_back(decode ? api.tokenizer->decode(ids, true) : "");
}

}  // namespace

void read_model_name(const Api& api, JsonFields& fields) {
  if (auto model = fields.text("model"); model && *model != api.model_name)
    fields.fail(unknown_model(api, *model));
}

ApiError unknown_model(const Api& api, const std::string& name) {
  return {404, "invalid_request_error",
          fmt::format("model: found {}, this server has \"{}\"", describe(json::value(name)),
                      api.model_name),
          "model", "model_not_found"};
}

void read_origin(const HttpRequest& http, Request& r) {
  r.tenant = http.tenant, r.weight = http.rights.weight, r.label = http.id;
  r.stamps = {.received = http.received_ns, .body = http.body_ns, .taken = http.taken_ns};
  r.written = http.written;
  const std::string_view parent = http.header("traceparent");
  r.traceparent = is_traceparent(parent) ? parent : std::string_view();
}

static_assert(kMaxKeyPriority == kMaxPriority);  // what a key may be given, a request may ask for

void read_service(const Api& api, const HttpRequest& http, JsonFields& fields, Request& r) {
  const int floor = std::max(-kMaxPriority, http.rights.min_priority);
  r.priority = static_cast<int>(
      fields.integer("priority", floor, kMaxPriority).value_or(std::max(0, floor)));
  r.timeout = api.default_timeout;
  if (auto seconds = fields.number("timeout")) {
    if (*seconds > 0 && *seconds <= kMaxTimeoutSeconds)
      r.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(*seconds * 1000)));
    else
      fields.fail("timeout", fmt::format("found {}, allowed above 0 and up to {} seconds", *seconds,
                                         kMaxTimeoutSeconds));
  }
  r.speculative = fields.boolean("speculative").value_or(true);
  // The length comes first: no salt of one key can spell another key's.
  const std::string scope = api.scope(http.tenant);
  r.cache_salt = fmt::format("{}:{}{}", scope.size(), scope,
                             fields.text("cache_salt", kMaxSaltBytes).value_or(""));
  read_origin(http, r);
}

Prompts read_prompts(const Api& api, JsonFields& fields, const PromptField& field) {
  constexpr const char* kAllowed =
      "allowed a string, a list of strings, a list of token ids or a list of such lists";
  Prompts out;
  auto fail = [&](std::string_view name, std::string found) {
    fields.fail(name, fmt::format("found {}, {}", found, kAllowed));
    return Prompts();
  };
  const json::value* value = fields.any(field.name);
  if (fields.error()) return out;
  if (value == nullptr) return fail(field.name, "nothing");
  const json::array* list = value->if_array();
  if (value->is_string() || (list != nullptr && !list->empty() && list->front().is_number())) {
    read_prompt(api, fields, field, *value, field.name, out);
    return out;
  }
  if (list == nullptr || list->empty()) return fail(field.name, describe(*value));
  if (list->size() > field.most) {
    fields.fail(field.name, fmt::format("found {} {}, allowed up to {}{}", list->size(),
                                        field.plural, field.most, field.why_most));
    return out;
  }
  json::kind kind = list->front().kind();
  for (std::size_t i = 0; i < list->size() && !fields.error(); ++i) {
    const json::value& item = (*list)[i];
    std::string name = fmt::format("{}[{}]", field.name, i);
    if (item.kind() != kind || !(item.is_string() || item.is_array()))
      return fail(name, describe(item));
    read_prompt(api, fields, field, item, name, out);
  }
  return out;
}

}  // namespace vitrine
