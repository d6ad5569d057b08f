#include "formats/generation.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "formats/detail.h"

namespace vitrine {
namespace {

using detail::quote_name;

// Whether the key is there with a value of its own. An object or a list of mixed types was
// flattened into keys below it, and is of the wrong type for every setting here.
Result<bool> has_value(const Meta& meta, std::string_view key) {
  if (meta.has(key)) return true;
  std::string below = fmt::format("{}.", key);
  auto it = meta.all().lower_bound(below);
  if (it != meta.all().end() && it->first.starts_with(below))
    return make_error(ErrorCode::kMalformed,
                      "metadata key {} is an object or a list of mixed types", quote_name(key));
  return false;
}

Result<std::int32_t> token_id(std::string_view key, std::int64_t id) {
  if (id < 0 || id > std::numeric_limits<std::int32_t>::max())
    return make_error(ErrorCode::kMalformed, "metadata key {} is {}, wanted a token id",
                      quote_name(key), id);
  return static_cast<std::int32_t>(id);
}

Status read_number(const Meta& meta, std::string_view key, std::optional<double>& out) {
  VT_TRY(bool found, has_value(meta, key));
  if (!found) return Ok{};
  VT_TRY(double value, meta.get_float(key));
  if (!std::isfinite(value))
    return make_error(ErrorCode::kMalformed, "metadata key {} is {}, wanted a finite number",
                      quote_name(key), value);
  out = value;
  return Ok{};
}

Status read_integer(const Meta& meta, std::string_view key, std::optional<std::int64_t>& out) {
  VT_TRY(bool found, has_value(meta, key));
  if (!found) return Ok{};
  VT_TRY(out, meta.get_int(key));
  return Ok{};
}

Status read_bos(const Meta& meta, std::string_view key, GenerationDefaults& out) {
  VT_TRY(bool found, has_value(meta, key));
  if (!found || out.bos_id) return Ok{};
  VT_TRY(std::int64_t id, meta.get_int(key));
  VT_TRY(out.bos_id, token_id(key, id));
  return Ok{};
}

// One id or a list of them.
Status read_eos(const Meta& meta, std::string_view key, GenerationDefaults& out) {
  VT_TRY(bool found, has_value(meta, key));
  if (!found) return Ok{};
  std::vector<std::int64_t> ids;
  if (std::holds_alternative<MetaArray>(*meta.find(key))) {
    VT_TRY(ids, meta.get_ints(key));
  } else {
    VT_TRY(std::int64_t id, meta.get_int(key));
    ids.push_back(id);
  }
  if (ids.size() > 1024)
    return make_error(ErrorCode::kTooLarge, "metadata key {} has {} ids, at most 1024",
                      quote_name(key), ids.size());
  for (std::int64_t id : ids) {
    VT_TRY(std::int32_t checked, token_id(key, id));
    if (std::find(out.eos_ids.begin(), out.eos_ids.end(), checked) == out.eos_ids.end())
      out.eos_ids.push_back(checked);
  }
  return Ok{};
}

// llama.cpp's numbers: none, mean, cls, last, rank.
Status read_gguf_pooling(const Meta& meta, GenerationDefaults& out) {
  static constexpr const char* kNames[] = {"none", "mean", "cls", "last", "rank"};
  if (!meta.has("general.architecture")) return Ok{};
  VT_TRY(std::string_view arch, meta.get_string("general.architecture"));
  std::optional<std::int64_t> kind;
  VT_RETURN_IF_ERROR(read_integer(meta, fmt::format("{}.pooling_type", arch), kind));
  if (kind && *kind > 0 && *kind < std::ssize(kNames)) out.pooling = kNames[*kind];
  return Ok{};
}

}  // namespace

Result<GenerationDefaults> generation_from_gguf(const Meta& meta) {
  GenerationDefaults out;
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                          "tokenizer.ggml.eom_token_id"})
    VT_RETURN_IF_ERROR(read_eos(meta, key, out));
  VT_RETURN_IF_ERROR(read_bos(meta, "tokenizer.ggml.bos_token_id", out));
  VT_RETURN_IF_ERROR(read_number(meta, "general.sampling.temp", out.temperature));
  VT_RETURN_IF_ERROR(read_number(meta, "general.sampling.top_p", out.top_p));
  VT_RETURN_IF_ERROR(read_number(meta, "general.sampling.min_p", out.min_p));
  VT_RETURN_IF_ERROR(read_number(meta, "general.sampling.penalty_repeat", out.repetition_penalty));
  VT_RETURN_IF_ERROR(read_integer(meta, "general.sampling.top_k", out.top_k));
  VT_RETURN_IF_ERROR(read_gguf_pooling(meta, out));
  return out;
}

Result<GenerationDefaults> generation_from_hf(const Meta& generation, const Meta& config) {
  GenerationDefaults out;
  VT_RETURN_IF_ERROR(read_number(generation, "temperature", out.temperature));
  VT_RETURN_IF_ERROR(read_number(generation, "top_p", out.top_p));
  VT_RETURN_IF_ERROR(read_number(generation, "min_p", out.min_p));
  VT_RETURN_IF_ERROR(read_number(generation, "typical_p", out.typical_p));
  VT_RETURN_IF_ERROR(read_number(generation, "repetition_penalty", out.repetition_penalty));
  VT_RETURN_IF_ERROR(read_integer(generation, "top_k", out.top_k));
  VT_TRY(bool has_do_sample, has_value(generation, "do_sample"));
  if (has_do_sample) {
    VT_TRY(out.do_sample, generation.get_bool("do_sample"));
  }
  VT_RETURN_IF_ERROR(read_eos(generation, "eos_token_id", out));
  if (out.eos_ids.empty()) VT_RETURN_IF_ERROR(read_eos(config, "eos_token_id", out));
  if (out.eos_ids.empty()) VT_RETURN_IF_ERROR(read_eos(config, "text_config.eos_token_id", out));
  VT_RETURN_IF_ERROR(read_bos(generation, "bos_token_id", out));
  VT_RETURN_IF_ERROR(read_bos(config, "bos_token_id", out));
  VT_RETURN_IF_ERROR(read_bos(config, "text_config.bos_token_id", out));
  return out;
}

Result<std::optional<std::string>> pooling_from_hf(const Meta& pooling) {
  std::optional<std::string> out;
  for (const auto& [key, name] :
       {std::pair{"pooling_mode_cls_token", "cls"}, std::pair{"pooling_mode_mean_tokens", "mean"},
        std::pair{"pooling_mode_lasttoken", "last"}}) {
    VT_TRY(bool found, has_value(pooling, key));
    if (!found) continue;
    VT_TRY(bool on, pooling.get_bool(key));
    if (on) out = name;
  }
  return out;
}

}  // namespace vitrine
