#include "server/openai_request.h"

#include <charconv>
#include <cmath>

#include "sampling/presets.h"
#include "server/chat_request.h"
#include "server/constraint_fields.h"
#include "server/json_fields.h"
#include "server/prompt_fields.h"

namespace vitrine {
namespace {

// A SamplingParams error begins with the parameter's name.
void take(JsonFields& fields, std::string_view name, const Status& status) {
  if (status.ok()) return;
  fields.fail(bad_field(std::string(name), status.error().message));
}

void read_logit_bias(JsonFields& fields, SamplingParams& params) {
  const json::object* object = fields.object("logit_bias");
  if (object == nullptr) return;
  if (object->size() > BiasTable::kMaxEntries)
    return fields.fail("logit_bias", fmt::format("found {} entries, allowed up to {}",
                                                 object->size(), BiasTable::kMaxEntries));
  std::vector<LogitBias> entries;
  for (const auto& item : *object) {
    std::string_view key = item.key();
    LogitBias entry{};
    auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), entry.id);
    if (error != std::errc() || end != key.data() + key.size())
      return fields.fail("logit_bias", fmt::format("found {} as a key, allowed token ids",
                                                   describe(json::value(key))));
    JsonFields value(*object, "logit_bias");
    auto bias = value.number(key);
    if (!bias) {
      if (value.error()) return fields.fail(*value.error());
      return fields.fail("logit_bias",
                         fmt::format("found null for token {}, allowed numbers", key));
    }
    entry.bias = static_cast<float>(*bias);
    entries.push_back(entry);
  }
  take(fields, "logit_bias", params.set_logit_bias(std::move(entries)));
}

// The request's own layer over its preset over the server's defaults.
SamplingParams read_sampling(const Api& api, JsonFields& fields) {
  SamplingParams own, preset;
  for (const Param* p : all_params())
    if (auto value = fields.number(p->name)) take(fields, p->name, own.set(p->name, *value));
  if (auto seed = fields.bits("seed")) own.set_seed(*seed);
  read_logit_bias(fields, own);
  if (auto order = fields.texts("samplers", 64)) take(fields, "samplers", own.set_order(*order));
  if (auto name = fields.text("preset")) {
    auto made = preset_params(*name);
    if (made.ok())
      preset = std::move(*made);
    else
      fields.fail("preset", made.error().message);
  }
  if (!fields.error()) take(fields, "logit_bias", own.check_vocab(api.vocab));
  return resolve({&own, &preset, &api.defaults});
}

void read_stops(const Api& api, JsonFields& fields, std::vector<std::string> own, Call& call) {
  const json::value* value = fields.any("stop");
  std::size_t most = StopStrings::kMaxStops - own.size();
  if (value != nullptr && value->is_string())
    own.emplace_back(value->get_string());
  else if (value != nullptr && !value->is_array())
    fields.fail("stop",
                fmt::format("found {}, allowed a string or a list of strings", describe(*value)));
  else if (auto list = fields.texts("stop", most))
    own.insert(own.end(), list->begin(), list->end());
  if (fields.error() || own.empty()) return;
  if (api.tokenizer == nullptr)
    return fields.fail("stop", "the model has no tokenizer, so there is no text to stop in");
  auto made = StopStrings::make(std::move(own), "stop");
  if (made.ok())
    call.stops = std::move(*made);
  else
    fields.fail(bad_field("stop", made.error().message));
}

void read_stream(JsonFields& fields, Call& call) {
  call.stream = fields.boolean("stream").value_or(false);
  if (const json::object* options = fields.object("stream_options")) {
    JsonFields inner(*options, "stream_options");
    call.include_usage = inner.boolean("include_usage").value_or(false);
    inner.ignore({"include_obfuscation"});
    if (auto error = inner.close()) return fields.fail(std::move(*error));
    if (!call.stream) fields.fail("stream_options", "allowed only with \"stream\": true");
  }
}

// The engine's own.
void read_own(const Api& api, const HttpRequest& http, JsonFields& fields, Call& call) {
  Request& r = call.request;
  read_service(api, http, fields, r);
  r.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  r.min_tokens = static_cast<int>(fields.integer("min_tokens", 0, api.context).value_or(0));
  for (std::int32_t id : fields.ids("stop_token_ids", 1024, api.vocab))
    r.stop_token_ids.push_back(id);
  if (const json::object* own = fields.object("vitrine")) {
    JsonFields inner(*own, "vitrine");
    call.timings = inner.boolean("timings").value_or(false);
    if (auto error = inner.close()) fields.fail(std::move(*error));
  }
}

void compile_constraint(const Api& api, JsonFields& fields,
                        const std::optional<ConstraintSpec>& spec, Request& r) {
  if (!spec || fields.error()) return;
  auto made = api.constraints.compile(api.tokenizer, *spec);
  if (made.ok())
    r.constraint = std::move(*made);
  else
    fields.fail(bad_field(spec->name, made.error().message));
}

// What both endpoints have in common.
void read_common(const Api& api, const HttpRequest& http, JsonFields& fields, Call& call) {
  read_model_name(api, fields);
  Request& r = call.request;
  r.sampling = read_sampling(api, fields);
  r.choices = static_cast<int>(fields.integer("n", 1, kMaxChoices).value_or(1));
  read_stream(fields, call);
  read_own(api, http, fields, call);
  r.max_backlog = call.stream ? api.stream_backlog : 0;
  // Of OpenAI's, without a meaning here.
  fields.ignore({"user", "metadata", "store", "service_tier", "safety_identifier",
                 "prompt_cache_key", "prompt_cache_retention", "prediction"});
}

// Against the context, once the prompts are known.
void check_lengths(const Api& api, JsonFields& fields, const char* name, const Call& call) {
  const Request& r = call.request;
  if (r.max_tokens && r.min_tokens > *r.max_tokens)
    fields.fail("min_tokens", fmt::format("found {}, allowed up to max_tokens, which is {}",
                                          r.min_tokens, *r.max_tokens));
  std::size_t room = r.max_tokens == 0 ? 0 : 1;  // the least that must be left for the answer
  auto context = static_cast<std::size_t>(api.context);
  for (const auto& prompt : call.prompts) {
    if (prompt.empty()) fields.fail(name, "found no tokens, allowed at least one");
    if (prompt.size() + room > context)
      fields.fail(name,
                  fmt::format("found {} tokens, allowed up to {}: the context holds {} for prompt "
                              "and answer together",
                              prompt.size(), context - room, context),
                  "context_length_exceeded");
  }
}

void read_top_logprobs(JsonFields& fields, std::string_view name, Request& r) {
  r.top_logprobs = static_cast<int>(fields.integer(name, 0, kMaxTopLogprobs).value_or(0));
}

void read_completion_fields(const Api& api, const HttpRequest& http, JsonFields& fields,
                            Call& call) {
  Request& r = call.request;
  read_common(api, http, fields, call);
  r.max_tokens = static_cast<int>(fields.clamped("max_tokens", 0, api.context).value_or(16));
  bool echo = fields.boolean("echo").value_or(false);
  r.logprobs = fields.any("logprobs") != nullptr;
  read_top_logprobs(fields, "logprobs", r);
  r.prompt_logprobs = echo && r.logprobs;
  fields.refuse({"suffix"});
  fields.ignore({"parallel_tool_calls"});
  if (auto best = fields.integer("best_of", 1, kMaxChoices); best && *best != r.choices)
    fields.fail("best_of", fmt::format("found {}, allowed only the value of n, which is {}", *best,
                                       r.choices));
  compile_constraint(api, fields, read_constraint(fields), r);
  read_stops(api, fields, {}, call);
  PromptField field{.name = "prompt", .plural = "prompts", .most = kMaxPrompts / r.choices};
  field.why_most = fmt::format(" of {} choices each", r.choices);
  field.keep_text = echo;
  Prompts prompts = read_prompts(api, fields, field);
  call.prompts = std::move(prompts.ids), call.echoes = std::move(prompts.texts);
  check_lengths(api, fields, "prompt", call);
}

// OpenAI's fields for what a text model cannot do.
void refuse_chat_fields(JsonFields& fields) {
  fields.refuse({"functions", "function_call", "audio", "web_search_options", "verbosity"});
  if (auto modalities = fields.texts("modalities", 16))
    for (const std::string& m : *modalities)
      if (m != "text")
        fields.fail("modalities",
                    fmt::format("found {}, allowed \"text\"", describe(json::value(m))),
                    "unsupported_parameter");
}

void read_chat_fields(const Api& api, const HttpRequest& http, JsonFields& fields, Call& call) {
  Request& r = call.request;
  read_common(api, http, fields, call);
  auto newer = fields.clamped("max_completion_tokens", 1, api.context);
  auto older = fields.clamped("max_tokens", 1, api.context);
  if (newer || older) r.max_tokens = static_cast<int>(newer ? *newer : *older);
  r.logprobs = fields.boolean("logprobs").value_or(false);
  read_top_logprobs(fields, "top_logprobs", r);
  if (r.top_logprobs > 0 && !r.logprobs)
    fields.fail("top_logprobs", "allowed only with \"logprobs\": true");
  refuse_chat_fields(fields);
  std::vector<std::int32_t> prompt;
  auto constraint = read_constraint(fields);
  call.chat = read_chat_call(api, fields, std::move(constraint), r, prompt);
  std::vector<std::string> stops;
  if (api.chat != nullptr) stops = api.chat->stops();
  read_stops(api, fields, std::move(stops), call);
  if (fields.error()) return;
  // The end of a turn is an end of the text like EOS.
  if (!r.ignore_eos)
    for (std::int32_t id : api.chat->stop_token_ids()) r.stop_token_ids.push_back(id);
  call.prompts.push_back(std::move(prompt));
  check_lengths(api, fields, "messages", call);
}

using ReadFields = void (*)(const Api&, const HttpRequest&, JsonFields&, Call&);

ParsedCall read_call(const Api& api, const HttpRequest& http, ReadFields read) {
  ParsedCall out;
  json::value body;
  out.error = parse_body(http.body, body);
  if (out.error) return out;
  JsonFields fields(body.get_object());
  read(api, http, fields, out.call);
  out.error = fields.close();
  return out;
}

}  // namespace

ParsedCall read_completion(const Api& api, const HttpRequest& http) {
  return read_call(api, http, read_completion_fields);
}

ParsedCall read_chat(const Api& api, const HttpRequest& http) {
  return read_call(api, http, read_chat_fields);
}

HttpError engine_error(const Error& error) {
  switch (error.code) {
    case ErrorCode::kBusy:
      return {429, "rate_limit_error", error.message, "", "queue_full"};
    case ErrorCode::kInvalid:
      return bad_field("", error.message);
    case ErrorCode::kTooLarge:
      return bad_field("", error.message, "context_length_exceeded");
    default:
      return {500, "server_error", error.message, "", ""};
  }
}

}  // namespace vitrine
