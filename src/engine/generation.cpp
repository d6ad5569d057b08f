#include "engine/generation.h"

namespace vitrine {

Result<SamplingParams> generation_layer(const GenerationDefaults& d) {
  SamplingParams p;
  auto set = [&](const char* name, const auto& value) -> Status {
    if (!value) return Ok{};
    Status status = p.set(name, static_cast<double>(*value));
    if (status.ok()) return status;
    return make_error(ErrorCode::kMalformed, "the model's generation defaults: {}",
                      status.error().message);
  };
  VT_RETURN_IF_ERROR(set("temperature", d.temperature));
  VT_RETURN_IF_ERROR(set("top_k", d.top_k));
  VT_RETURN_IF_ERROR(set("top_p", d.top_p));
  VT_RETURN_IF_ERROR(set("min_p", d.min_p));
  VT_RETURN_IF_ERROR(set("typical_p", d.typical_p));
  VT_RETURN_IF_ERROR(set("repetition_penalty", d.repetition_penalty));
  if (d.do_sample && !*d.do_sample) VT_RETURN_IF_ERROR(p.set("temperature", 0));
  return p;
}

}  // namespace vitrine
