#include "sampling/presets.h"
#include "base/utf8.h"

namespace vitrine {
namespace {

// What a preset does not name of cuts, and of samplers with a state, it turns off. It leaves
// repetition_penalty alone: where a model's generation_config asks for one, the model needs it.
constexpr PresetValue kCode[] = {{"temperature", 0.2}, {"top_k", 0}, {"top_p", 0.95}, {"min_p", 0}};
constexpr PresetValue kFactual[] = {
    {"temperature", 0.3}, {"top_k", 40}, {"top_p", 0.9}, {"min_p", 0.05}};
constexpr PresetValue kChat[] = {
    {"temperature", 0.7}, {"top_k", 40}, {"top_p", 0.95}, {"min_p", 0.02}};
// min_p makes high temperatures usable: what it drops depends on how certain the model is.
constexpr PresetValue kCreative[] = {
    {"temperature", 1.0}, {"top_k", 0}, {"top_p", 1}, {"min_p", 0.05}, {"presence_penalty", 0.2}};
constexpr PresetValue kBrainstorm[] = {{"temperature", 1.3},
                                       {"top_k", 0},
                                       {"top_p", 1},
                                       {"min_p", 0.05},
                                       {"presence_penalty", 0.6},
                                       {"frequency_penalty", 0.2}};

// What is certain, or the end.
constexpr PresetValue kInfill[] = {
    {"temperature", 0.2}, {"top_k", 40}, {"top_p", 0.99}, {"min_p", 0}, {"infill", 1}};

constexpr Preset kPresets[] = {
    {"code", "programs and structured output: the likely token, few surprises", kCode},
    {"factual", "answers, extraction, summaries: stay close to the best token", kFactual},
    {"chat", "conversation: varied wording, steady content", kChat},
    {"creative", "stories and verse: wide choice among plausible tokens", kCreative},
    {"brainstorm", "many different ideas: wide choice, repetition discouraged", kBrainstorm},
    {"infill", "what belongs between two texts: what is certain, then the end", kInfill},
};

}  // namespace

std::span<const Preset> all_presets() { return kPresets; }

Result<SamplingParams> preset_params(std::string_view name) {
  std::string known;
  for (const Preset& preset : kPresets) {
    known += (known.empty() ? "" : ", ") + std::string(preset.name);
    if (name != preset.name) continue;
    // So that it means the same for every model and server.
    SamplingParams params;
    VT_RETURN_IF_ERROR(params.set("dynatemp_range", 0));
    for (const SamplerDef* def : all_samplers())
      if (def->cuts || def->replaces_cuts || def->state != nullptr)
        for (const Param& p : def->params) VT_RETURN_IF_ERROR(params.set(p.name, p.neutral));
    for (const PresetValue& v : preset.values) VT_RETURN_IF_ERROR(params.set(v.param, v.value));
    return params;
  }
  return make_error(ErrorCode::kInvalid, "unknown preset '{}', known: {}", shortened(name), known);
}

}  // namespace vitrine
