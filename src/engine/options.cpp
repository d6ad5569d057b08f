#include "engine/options.h"

#include "kernels/backend.h"

namespace vitrine {

Status check_options(const EngineOptions& o) {
  auto within = [](const char* name, int value, EngineRange range) -> Status {
    if (value >= range.least && value <= range.most) return Ok{};
    return make_error(ErrorCode::kInvalid, "{}: found {}, allowed {} to {}", name, value,
                      range.least, range.most);
  };
  using Ranges = EngineRanges;
  VT_RETURN_IF_ERROR(within("commit delay", o.commit_delay, {-1, Backend::kStepsInFlight - 1}));
  VT_RETURN_IF_ERROR(within("sequences", o.sequences, Ranges::sequences));
  VT_RETURN_IF_ERROR(within("KV tokens", o.kv_tokens, Ranges::kv_tokens));
  VT_RETURN_IF_ERROR(within("queue", o.max_queue, Ranges::max_queue));
  VT_RETURN_IF_ERROR(within("wait of a static batch", o.static_wait_ms, Ranges::static_wait_ms));
  VT_RETURN_IF_ERROR(within("time of a mixed step", o.mixed_step_ms, Ranges::mixed_step_ms));
  VT_RETURN_IF_ERROR(within("MiB of the step log", o.trace_mib, Ranges::trace_mib));
  VT_RETURN_IF_ERROR(within("guesses of a sequence", o.spec_tokens, Ranges::spec_tokens));
  if (o.spec == SpecMode::kDraft && o.draft.file == nullptr)
    return make_error(ErrorCode::kInvalid, "speculation: found draft without a draft model");
  VT_RETURN_IF_ERROR(within("MiB for guesses", o.spec_mib, Ranges::spec_mib));
  VT_RETURN_IF_ERROR(within("step tokens", o.step_tokens, Ranges::step_tokens));
  VT_RETURN_IF_ERROR(within("page size", o.page_size, Ranges::page_size));
  if (o.page_size % 16 != 0)
    return make_error(ErrorCode::kInvalid, "page size: found {}, must be a multiple of 16",
                      o.page_size);
  VT_RETURN_IF_ERROR(within("context", o.context, Ranges::context));
  VT_RETURN_IF_ERROR(within("threads", o.threads, Ranges::threads));
  return Ok{};
}

namespace {

constexpr SpecMode kSpecModes[] = {SpecMode::kAuto, SpecMode::kOff, SpecMode::kNgram,
                                   SpecMode::kSuffix, SpecMode::kDraft};

}  // namespace

const char* spec_mode_name(SpecMode mode) {
  static constexpr const char* kNames[] = {"auto", "off", "ngram", "suffix", "draft"};
  return kNames[static_cast<int>(mode)];
}

std::optional<SpecMode> spec_mode(std::string_view name) {
  for (const SpecMode mode : kSpecModes)
    if (name == spec_mode_name(mode)) return mode;
  return std::nullopt;
}

const char* policy_name(Policy policy) {
  return policy == Policy::kContinuous ? "continuous" : "static";
}

}  // namespace vitrine
