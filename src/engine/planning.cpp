#include "engine/planning.h"

#include <algorithm>
#include <optional>

#include "engine/draft_model.h"
#include "engine/records.h"
#include "kernels/counting.h"
#include "models/model.h"

namespace vitrine {
BackendOptions backend_options(const EngineOptions& o) {
  return {.threads = o.threads,
          .isa = o.isa,
          .deterministic = o.deterministic,
          .synchronous = o.synchronous,
          .device = o.device};
}

Status check_memory(const MemoryPlan& plan, const Device& device) {
  std::optional<std::int64_t> free = device.free_memory();
  if (!free || plan.total() <= *free) return Ok{};
  std::string draft;
  if (!plan.draft.empty()) {
    const MemoryPlan& d = plan.draft.front();
    draft = fmt::format(", draft model {}: weights {}, KV {}, activations {}", d.total() >> 20,
                        d.packed_bytes >> 20, d.kv_bytes >> 20, d.activation_bytes >> 20);
  }
  return make_error(ErrorCode::kTooLarge,
                    "the plan needs {} MiB (weights {}, KV {}, activations {}{}), {} MiB are free; "
                    "a smaller --ctx or fewer --sequences need less{}",
                    plan.total() >> 20, plan.packed_bytes >> 20, plan.kv_bytes >> 20,
                    plan.activation_bytes >> 20, draft, *free >> 20,
                    draft.empty() ? "" : ", and --spec suffix needs no draft model");
}

Result<int> choose_context(const EngineOptions& options, int model_context) {
  if (options.context > model_context)
    return make_error(ErrorCode::kInvalid,
                      "a context of {} was asked for; the model was made for at most {}",
                      options.context, model_context);
  int context = options.context > 0 ? options.context : std::min(model_context, kDefaultContext);
  // Slots of the KV cache are 32-bit numbers.
  constexpr std::int64_t kMaxPositions = std::int64_t{1} << 30;
  std::int64_t positions = options.kv_tokens > 0
                               ? options.kv_tokens
                               : static_cast<std::int64_t>(context) * options.sequences;
  if (positions > kMaxPositions)
    return make_error(ErrorCode::kTooLarge,
                      "{} sequences of {} tokens are more than the {} positions a cache can have",
                      options.sequences, context, kMaxPositions);
  return context;
}

void choose_sizes(EngineOptions& o, std::int64_t free, std::int64_t bytes_per_token, int context) {
  constexpr int kMostSequences = 256, kTypicalLength = 512;
  if (o.sequences > 0) return;
  std::int64_t most = std::int64_t{kMostSequences} * context;
  if (o.kv_tokens == 0)
    o.kv_tokens = static_cast<int>(
        std::clamp<std::int64_t>(free / 2 / std::max<std::int64_t>(1, bytes_per_token), context,
                                 std::min(most, std::int64_t{1} << 30)));
  o.sequences = static_cast<int>(
      std::clamp<std::int64_t>(o.kv_tokens / std::min(kTypicalLength, context), 1, kMostSequences));
  o.sequences = std::min(o.sequences, o.step_tokens);
}

Result<MemoryPlan> plan_cache(const Model& model, const Device& device,
                              const EngineOptions& options, int context) {
  MemoryPlan plan;
  plan.context = context;
  plan.sequences = options.sequences;
  plan.page_size = options.page_size;
  plan.kv_dtype = options.kv_dtype;
  plan.trace_bytes = static_cast<std::int64_t>(options.trace_mib) << 20;
  const bool texts = options.spec != SpecMode::kOff && options.spec != SpecMode::kDraft;
  plan.spec_bytes = !texts ? 0 : static_cast<std::int64_t>(options.spec_mib) << 20;
  plan.spare_pages = device.asynchronous() ? 1 : 0;
  plan.packed_bytes = model.totals().packed_bytes;
  // The runner adds hidden states and a slice of logits, which it may have to copy to the host.
  plan.activation_bytes =
      model.totals().activation_bytes +
      4LL * (static_cast<std::int64_t>(options.step_tokens) * model.info().dim +
             2LL * std::min(device.head_rows(), options.step_tokens) * model.info().vocab);
  for (int layer = 0; layer < model.info().layers; ++layer) {
    CacheSpec spec = model.cache_spec(layer);
    spec.layout.k.type = spec.layout.v.type = options.kv_dtype;
    // A window that the context never leaves is no window.
    if (spec.window >= context) spec.window = 0;
    auto group = std::find_if(plan.groups.begin(), plan.groups.end(),
                              [&](const CacheGroup& g) { return g.spec == spec; });
    if (group == plan.groups.end()) group = plan.groups.insert(group, CacheGroup{.spec = spec});
    plan.group_of.push_back(static_cast<int>(group - plan.groups.begin()));
    group->layers.push_back(layer);
  }
  auto pages_for = [&](int positions) { return (positions + plan.page_size - 1) / plan.page_size; };
  for (CacheGroup& g : plan.groups) {
    VT_RETURN_IF_ERROR(device.check_kv(g.spec.layout));
    g.page_bytes = device.kv_page_bytes({g.spec.layout, plan.page_size}) *
                   static_cast<std::int64_t>(g.layers.size());
    g.pages_per_sequence = pages_for(context);
    // Behind the window, and a step's rows ahead of it, both possibly in the middle of a page; with
    // commits delayed, the rows of the steps in between too.
    if (g.spec.window > 0) {
      std::int64_t span =
          static_cast<std::int64_t>(g.spec.window) +
          static_cast<std::int64_t>(options.step_tokens) * (1 + options.commit_delay);
      if (span < context)
        g.pages_per_sequence =
            std::min(g.pages_per_sequence, pages_for(static_cast<int>(span)) + 1);
    }
    // Never less than one sequence needs: the first by rank must always get on. A windowed group
    // gets twice what its sequences can hold, the rest being cached windows.
    std::int64_t wanted = static_cast<std::int64_t>(g.pages_per_sequence) * plan.sequences;
    if (options.kv_tokens > 0) {
      wanted = pages_for(options.kv_tokens);
      if (g.spec.window > 0)
        wanted = std::min<std::int64_t>(wanted, 2LL * g.pages_per_sequence * plan.sequences);
    }
    g.pages = static_cast<int>(std::max<std::int64_t>(wanted, g.pages_per_sequence));
    plan.kv_bytes += g.page_bytes * (g.pages + plan.spare_pages);
    plan.kv_bytes_per_token += g.page_bytes / plan.page_size;
  }
  return plan;
}

namespace {

// A step of all sequences must fit into the log of steps.
Status check_log(const EngineOptions& options) {
  const auto fits = [&](int mib) {
    return Records::fits(options.sequences, static_cast<std::int64_t>(mib) << 20);
  };
  int least = options.trace_mib;
  while (!fits(least)) ++least;
  if (least == options.trace_mib) return Ok{};
  return make_error(ErrorCode::kInvalid,
                    "MiB of the step log (--trace-mib): found {}, allowed 0 or from {} on with {} "
                    "sequences",
                    options.trace_mib, least, options.sequences);
}

// The draft model's, beside a model with this context. It follows the target's sizes.
Result<MemoryPlan> plan_draft(const Model& draft, const Device& device,
                              const EngineOptions& options, int context) {
  const EngineOptions own = DraftModel::plan_options(options, context, draft.info().context);
  VT_TRY(MemoryPlan plan, plan_cache(draft, device, own, own.context));
  for (const TensorInfo& t : options.draft.file->tensors())
    plan.file_bytes += static_cast<std::int64_t>(t.data.size());
  return plan;
}

// An error says that it is about the draft model.
Result<std::unique_ptr<Model>> count_draft(const EngineOptions& options, Device& counting) {
  auto model = load_model(*options.draft.file, counting,
                          {.max_tokens = DraftModel::kRows, .context = 0, .progress = {}});
  if (model.ok()) return model;
  return make_error(model.error().code, "the draft model: {}", model.error().message);
}

}  // namespace

Result<MemoryPlan> plan_memory(const ModelFile& file, const Device& device, EngineOptions& options,
                               ModelInfo* info) {
  VT_RETURN_IF_ERROR(check_options(options));
  if (options.commit_delay < 0) options.commit_delay = device.asynchronous() ? 1 : 0;
  CountingDevice counting(device);
  ModelOptions model_options{
      .max_tokens = options.step_tokens, .context = options.context, .progress = {}};
  VT_TRY(auto model, load_model(file, counting, model_options));
  VT_TRY(int context, choose_context(options, model->info().context));
  CountingDevice beside(device);
  std::unique_ptr<Model> draft;
  if (options.drafts()) {
    VT_TRY(draft, count_draft(options, beside));
    const int shared = std::min(model->info().vocab, draft->info().vocab);
    options.draft.ids = options.draft.ids > 0 ? std::min(options.draft.ids, shared) : shared;
  }
  if (options.sequences == 0) {
    EngineOptions one = options;
    one.sequences = 1;
    VT_TRY(MemoryPlan probe, plan_cache(*model, device, one, context));
    if (draft) {
      VT_TRY(const MemoryPlan second, plan_draft(*draft, device, one, context));
      probe.packed_bytes += second.packed_bytes;
      probe.activation_bytes += second.activation_bytes;
      probe.kv_bytes_per_token += second.kv_bytes_per_token;
    }
    std::int64_t free = device.free_memory().value_or(std::int64_t{4} << 30);
    choose_sizes(options, free - probe.packed_bytes - probe.activation_bytes,
                 probe.kv_bytes_per_token, context);
  }
  VT_TRY(MemoryPlan plan, plan_cache(*model, device, options, context));
  if (draft) {
    VT_TRY(MemoryPlan second, plan_draft(*draft, device, options, context));
    plan.draft.push_back(std::move(second));
  }
  VT_RETURN_IF_ERROR(check_log(options));
  for (const TensorInfo& t : file.tensors())
    plan.file_bytes += static_cast<std::int64_t>(t.data.size());
  if (info != nullptr) *info = model->info();
  return plan;
}

}  // namespace vitrine
