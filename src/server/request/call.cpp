#include "server/request/call.h"

#include <charconv>

#include "sampling/chain.h"
#include "sampling/presets.h"
#include "server/request/beam_fields.h"
#include "server/request/limits.h"
#include "server/request/prediction.h"
#include "server/request/prompt_fields.h"
#include "tokenizer/token_words.h"

namespace vitrine {
namespace {

constexpr std::size_t kMaxIdDigits = 10;

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
    if (error != std::errc() || end != key.data() + key.size() || key.size() > kMaxIdDigits)
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

// Strings become tokens, for which there must be a tokenizer.
void read_words(const Api& api, JsonFields& fields, SamplingParams& params) {
  const auto read = [&](const char* name, std::size_t most, auto make, auto set) {
    const auto strings = fields.texts(name, most);
    if (!strings || fields.error()) return;
    if (api.tokenizer == nullptr)
      return fields.fail(name, "the model has no tokenizer, so there are no words");
    auto made = make(*api.tokenizer, *strings);
    if (!made.ok()) return fields.fail(name, made.error().message);
    take(fields, name, set(std::move(*made)));
  };
  read("bad_words", kMaxBadWords, tokens_of_words,
       [&](auto words) { return params.set_bad_words(std::move(words)); });
  read("dry_sequence_breakers", kMaxBreakers, tokens_with, [&](auto ids) -> Status {
    params.set_breakers(std::move(ids));
    return Ok{};
  });
}

void read_allowed_ids(const Api& api, JsonFields& fields, SamplingParams& params) {
  if (fields.any("allowed_token_ids") == nullptr) return;
  auto ids = fields.ids("allowed_token_ids", TokenLists::kMaxAllowed, api.vocab);
  if (fields.error()) return;
  if (ids.empty())
    return fields.fail("allowed_token_ids", "found an empty list, allowed at least one token id");
  take(fields, "allowed_token_ids", params.set_allowed_ids(std::move(ids)));
}

// infill looks at the texts of all tokens.
void give_texts(const Api& api, JsonFields& fields, SamplingParams& params) {
  if (api.tokenizer == nullptr)
    return fields.fail("infill", "the model has no tokenizer, so its tokens have no texts");
  if (api.end_ids.empty()) return fields.fail("infill", "the model has no token that ends a text");
  params.set_texts(
      api.texts_of_tokens.get([&] { return token_texts(*api.tokenizer); }, api.end_ids));
}

// The request's own layer over its preset over the server's defaults. `beams`: samplers that draw or cut are refused
// where the request asks for them, and left out where others do.
SamplingParams read_sampling(const Api& api, JsonFields& fields, const SamplingParams& lowest,
                             bool beams = false) {
  SamplingParams own, preset;
  for (const Param* p : all_params())
    if (auto value = fields.number(p->name)) take(fields, p->name, own.set(p->name, *value));
  if (auto seed = fields.bits("seed")) own.set_seed(*seed);
  read_logit_bias(fields, own);
  read_allowed_ids(api, fields, own);
  read_words(api, fields, own);
  if (auto order = fields.texts("samplers", kMaxSamplers))
    take(fields, "samplers", own.set_order(*order));
  if (auto name = fields.text("preset")) {
    auto made = preset_params(*name);
    if (made.ok())
      preset = std::move(*made);
    else
      fields.fail("preset", made.error().message);
  }
  if (resolve({&own, &preset, &lowest}).wants_texts()) give_texts(api, fields, own);
  const auto check = [&](const Status& status) {
    if (status.ok() || fields.error()) return;
    const std::string& message = status.error().message;
    fields.fail(bad_field(message.substr(0, message.find(':')), message));
  };
  check(own.check_vocab(api.vocab));
  if (beams) check(resolve({&own, &preset}).check_beams());
  SamplingParams out = resolve({&own, &preset, &lowest});
  if (api.tokenizer != nullptr && out.get("dry_multiplier") > 0 && !out.has_breakers())
    out.set_breakers(tokens_with(*api.tokenizer, default_breakers()).value());
  if (beams) return out.for_beams();
  return out;
}

// vLLM's. Sizes of 0 are its way to say "none".
void read_repetition(JsonFields& fields, Request& r) {
  const json::object* object = fields.object("repetition_detection");
  if (object == nullptr) return;
  JsonFields inner(*object, "repetition_detection");
  using End = RepetitionEnd;
  const auto most = inner.integer("max_pattern_size", 0, End::kMostTokens).value_or(0);
  const auto least = inner.integer("min_pattern_size", 0, End::kMostTokens).value_or(0);
  const auto count = inner.integer("min_count", 0, End::kMostCount).value_or(0);
  if (auto error = inner.close()) return fields.fail(std::move(*error));
  if (most == 0) return;
  const End end{.least = std::max(1, static_cast<int>(least)),
                .most = static_cast<int>(most),
                .count = static_cast<int>(count)};
  take(fields, "repetition_detection", end.check());
  r.repetition = end;
}

// The engine's own.
void read_own(const Api& api, const HttpRequest& http, JsonFields& fields, Call& call) {
  Request& r = call.request;
  read_service(api, http, fields, r);
  read_repetition(fields, r);
  r.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  r.min_tokens = static_cast<int>(fields.integer("min_tokens", 0, api.context).value_or(0));
  r.stop_token_ids = fields.ids("stop_token_ids", kMaxStopTokens, api.vocab);
  read_vitrine(api, fields, call, false);
}

}  // namespace

void read_stream(JsonFields& fields, Call& call, bool stream) {
  call.stream = fields.boolean("stream").value_or(stream);
  if (const json::object* options = fields.object("stream_options")) {
    JsonFields inner(*options, "stream_options");
    call.include_usage = inner.boolean("include_usage").value_or(false);
    inner.ignore({"include_obfuscation"});
    if (auto error = inner.close()) return fields.fail(std::move(*error));
    if (!call.stream) fields.fail("stream_options", "allowed only with \"stream\": true");
  }
}

void read_vitrine(const Api& api, JsonFields& fields, Call& call, bool record) {
  bool asked = record;
  if (const json::object* own = fields.object("vitrine")) {
    JsonFields inner(*own, "vitrine");
    call.timings = inner.boolean("timings").value_or(false);
    asked = inner.boolean("record").value_or(record);
    if (auto allow = inner.integer("allow", 0, api.context))
      call.request.allow = static_cast<int>(*allow);
    if (call.request.allow && !api.texts.keeps(asked))
      inner.fail("allow",
                 api.texts.mode() == RecordMode::kNone
                     ? "this server records no requests (--record none), and only one that "
                       "is recorded can be released"
                     : "allowed only with \"record\": true: only a request that is recorded "
                       "can be released");
    if (auto error = inner.close()) fields.fail(std::move(*error));
  }
  call.record = api.texts.keeps(asked);
}

SamplingParams read_overrides(const Api& api, JsonFields& fields, const SamplingParams& recorded) {
  SamplingParams out = recorded, order;
  if (const json::object* own = fields.object("sampling")) {
    JsonFields inner(*own, "sampling");
    out = read_sampling(api, inner, recorded);
    if (auto error = inner.close()) fields.fail(std::move(*error));
  }
  if (auto names = fields.texts("samplers", kMaxSamplers)) {
    take(fields, "samplers", order.set_order(*names));
    out = resolve({&order, &out});
  }
  // What a state was at a token follows from what was kept of the tokens before it.
  const SamplerDef* state = Chain(out).stateful();
  if (state != nullptr && state != Chain(recorded).stateful())
    fields.fail("sampling", fmt::format("{} has a state, which is not kept of this request: it "
                                        "was drawn without that sampler",
                                        state->name));
  return out;
}

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

void read_common(const Api& api, const HttpRequest& http, JsonFields& fields, Call& call) {
  read_model_name(api, fields);
  Request& r = call.request;
  r.choices = static_cast<int>(fields.integer("n", 1, kMaxChoices).value_or(1));
  r.beams = read_beams(fields, r.choices);
  r.sampling = read_sampling(api, fields, api.defaults, r.beams.has_value());
  read_stream(fields, call, false);
  read_own(api, http, fields, call);
  r.max_backlog = call.stream ? api.stream_backlog : 0;
  // Of OpenAI's, without a meaning here.
  fields.ignore({"user", "metadata", "store", "service_tier", "safety_identifier",
                 "prompt_cache_key", "prompt_cache_retention"});
  call.predicts = fields.any("prediction") != nullptr;
  read_prediction(api, fields, r);
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

void read_top_logprobs(JsonFields& fields, std::string_view name, Request& r) {
  r.top_logprobs = static_cast<int>(fields.integer(name, 0, kMaxTopLogprobs).value_or(0));
}

void check_lengths(const Api& api, JsonFields& fields, const char* name, const Call& call) {
  const Request& r = call.request;
  if (r.beams && !fields.error())
    if (const Status status = r.beams->check(); !status.ok()) {
      const std::string& message = status.error().message;
      const std::string field = message.substr(0, message.find(':'));
      // Of num_return: n is its name here.
      if (r.beams->returned > r.beams->beams)
        fields.fail("n", fmt::format("found {}, allowed up to beams, which is {}", r.choices,
                                     r.beams->beams));
      else
        fields.fail(bad_field(field, message));
    }
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

}  // namespace vitrine
