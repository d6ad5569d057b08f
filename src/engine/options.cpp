#include "engine/options.h"

#include "kernels/backend.h"

namespace vitrine {

Status check_options(const EngineOptions& o) {
  auto within = [](const char* name, std::int64_t value, std::int64_t min,
                   std::int64_t max) -> Status {
    if (value >= min && value <= max) return Ok{};
    return make_error(ErrorCode::kInvalid, "{}: found {}, allowed {} to {}", name, value, min, max);
  };
  VT_RETURN_IF_ERROR(within("commit delay", o.commit_delay, -1, Backend::kStepsInFlight - 1));
  VT_RETURN_IF_ERROR(within("sequences", o.sequences, 0, 4096));
  VT_RETURN_IF_ERROR(within("KV tokens", o.kv_tokens, 0, 1 << 30));
  VT_RETURN_IF_ERROR(within("queue", o.max_queue, 1, 1 << 20));
  VT_RETURN_IF_ERROR(within("wait of a static batch", o.static_wait_ms, 0, 1 << 20));
  VT_RETURN_IF_ERROR(within("time of a mixed step", o.mixed_step_ms, 0, 1 << 20));
  VT_RETURN_IF_ERROR(within("step tokens", o.step_tokens, 1, 65536));
  VT_RETURN_IF_ERROR(within("page size", o.page_size, 16, 1024));
  if (o.page_size % 16 != 0)
    return make_error(ErrorCode::kInvalid, "page size: found {}, must be a multiple of 16",
                      o.page_size);
  VT_RETURN_IF_ERROR(within("context", o.context, 0, 1 << 28));
  VT_RETURN_IF_ERROR(within("threads", o.threads, 0, 1024));
  return Ok{};
}

const char* policy_name(Policy policy) {
  return policy == Policy::kContinuous ? "continuous" : "static";
}

}  // namespace vitrine
