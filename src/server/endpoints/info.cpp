// GET /api/info: model, backend, limits, options, memory plan.
#include "base/json.h"
#include "chat/chat_template.h"
#include "engine/engine.h"
#include "engine/kept_lives.h"
#include "formats/storage.h"
#include "grammar/compiler.h"
#include "sampling/presets.h"
#include "server/answer/peak_json.h"
#include "server/api.h"
#include "tokenizer/tokenizer.h"

namespace vitrine {
namespace {

std::size_t record_bytes_most(const Api& api) {
  return api.texts.mode() == RecordMode::kNone ? 0 : api.texts.most_bytes();
}

json::object memory_json(const MemoryPlan& m, const Api& api) {
  json::array groups;
  for (const CacheGroup& g : m.groups)
    groups.push_back(json::object{{"layers", g.layers.size()},
                                  {"window", g.spec.window},
                                  {"kv_heads", g.spec.layout.heads},
                                  {"key_width", g.spec.layout.k.width},
                                  {"value_width", g.spec.layout.v.width},
                                  {"pages", g.pages},
                                  {"spare_pages", m.spare_pages},
                                  {"pages_per_sequence", g.pages_per_sequence},
                                  {"page_bytes", g.page_bytes}});
  return {{"file_bytes", m.file_bytes},
          {"packed_bytes", m.packed_bytes},
          {"activation_bytes", m.activation_bytes},
          {"kv_bytes", m.kv_bytes},
          {"kv_bytes_per_token", m.kv_bytes_per_token},
          {"draft_bytes", m.draft.empty() ? 0 : m.draft.front().total()},
          {"total_bytes", m.total()},
          {"constraint_cache_bytes_most", ConstraintCompiler::kMostBytes},
          {"tokenizer_cache_bytes_most", Tokenizer::kCacheBytes},
          {"record_bytes_most", record_bytes_most(api)},
          {"lives_bytes_most", kLivesBytesMost},
          {"trace_bytes", m.trace_bytes},
          {"spec_bytes", m.spec_bytes},
          {"logit_rows_bytes_most", LogitRows::kMostBytes},
          {"groups", std::move(groups)}};
}

json::object defaults_json(const SamplingParams& params) {
  json::object out;
  for (const Param* p : all_params()) out[p->name] = params.get(p->name);
  return out;
}

// The transforms in their default order, with what may be set.
json::array samplers_json() {
  json::array out;
  for (const SamplerDef* def : ordered_samplers()) {
    json::array params;
    for (const Param& p : def->params)
      params.push_back(json::object{{"name", p.name},
                                    {"neutral", p.neutral},
                                    {"min", p.min},
                                    {"max", p.max},
                                    {"min_excluded", p.min_excluded},
                                    {"integer", p.integer},
                                    {"help", p.help}});
    out.push_back(json::object{{"name", def->name},
                               {"order", def->order},
                               {"help", def->help},
                               {"always_runs", def->always_runs},
                               {"params", std::move(params)}});
  }
  return out;
}

json::array presets_json() {
  json::array out;
  for (const Preset& preset : all_presets()) {
    json::object values;
    for (const PresetValue& v : preset.values) values[v.param] = v.value;
    out.push_back(
        json::object{{"name", preset.name}, {"help", preset.help}, {"values", std::move(values)}});
  }
  return out;
}

Reply info(const Api& api, const HttpRequest&) {
  const Engine& engine = *api.engine;
  const EngineInfo& model = engine.info();
  const EngineOptions& options = engine.options();
  const KvLayout& layout = engine.memory().groups.front().spec.layout;
  Snapshot now = engine.snapshot();
  const std::optional<Peak> peak = engine.peak();
  json::object tokenizer, chat;
  if (api.tokenizer != nullptr)
    tokenizer = {{"kind", api.tokenizer->kind()}, {"vocab", api.tokenizer->vocab_size()}};
  if (api.chat != nullptr)
    chat = {{"template", api.chat->origin()},
            {"tool_calls", api.chat->tools() ? json::value(api.chat->tools()->name) : nullptr},
            {"reasoning", api.chat->reasoning().begin}};
  return to_json(json::object{
      {"version", api.version},
      {"started_unix", api.started_unix},
      {"uptime_s", now.uptime_s},
      {"model",
       {{"name", api.model_name},
        {"arch", model.arch},
        {"layers", model.layers},
        {"dim", model.dim},
        {"heads", model.heads},
        {"kv_heads", layout.heads},
        {"head_dim", layout.k.width},
        {"vocab", model.vocab},
        {"context", model.model_context}}},
      {"tokenizer", api.tokenizer != nullptr ? json::value(tokenizer) : json::value()},
      {"chat", api.chat != nullptr ? json::value(chat) : json::value()},
      {"backend",
       {{"name", engine.info().backend}, {"description", engine.info().backend_description}}},
      {"limits",
       {{"context", api.context},
        {"sequences", now.max_sequences},
        {"step_tokens", now.step_tokens},
        {"queue", now.max_queue},
        {"choices", kMaxChoices},
        {"top_logprobs", kMaxTopLogprobs},
        {"stream_backlog", api.stream_backlog}}},
      {"options",
       {{"policy", now.policy},
        {"page_size", options.page_size},
        {"kv_type", dtype_name(options.kv_dtype)},
        {"share_cache", api.share_cache},
        {"spec", spec_mode_name(options.spec)},
        {"spec_tokens", options.spec_tokens},
        {"draft", options.drafts() ? json::value(options.draft.file->path()) : json::value()}}},
      {"embeddings", {{"dimensions", engine.info().dim}, {"pooling", pooling_name(api.pooling)}}},
      {"sampling_defaults", defaults_json(api.defaults)},
      {"samplers", samplers_json()},
      {"presets", presets_json()},
      {"lab", api.lab},
      {"peaks", peak ? json::value(peak_json(*peak)) : json::value()},
      {"record",
       {{"mode", record_mode_name(api.texts.mode())}, {"bytes_most", record_bytes_most(api)}}},
      {"memory", memory_json(engine.memory(), api)}});
}

}  // namespace

extern const Endpoint kEndpoint_info;
const Endpoint kEndpoint_info{"GET", {"/api/info"}, reply_from_worker<info>};

}  // namespace vitrine
