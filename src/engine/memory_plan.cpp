#include "engine/memory_plan.h"

#include <algorithm>
#include <optional>

#include "quant/format.h"

namespace vitrine {
namespace {

class CountedWeight final : public Weight {
 public:
  explicit CountedWeight(const MatrixSource& m)
      : Weight(m.rows(), m.cols, m.dtype,
               m.rows() * format_bytes(find_format(m.dtype)->info, m.cols)) {}
};

// Allocates and packs nothing; sizes are those of the backend it stands for. Never computes.
class CountingBackend final : public Backend {
 public:
  explicit CountingBackend(const Backend& real) : real_(real) {}
  std::string name() const override { return "counting"; }
  std::string description() const override { return name(); }
  Peak measure_peak(DType) override { return {}; }
  Result<Buffer> allocate(std::int64_t bytes) override {
    return Buffer(this, bytes, [](void*) {});
  }
  void write(void*, const void*, std::int64_t) override {}
  const void* read(const void* from, std::int64_t, void*) override { return from; }
  void copy(void*, const void*, std::int64_t) override {}
  std::int64_t packed_bytes(DType dtype, std::int64_t rows, std::int64_t cols,
                            WeightUse use) const override {
    return real_.packed_bytes(dtype, rows, cols, use);
  }
  Result<std::unique_ptr<Weight>> pack(const MatrixSource& m, WeightUse) override {
    return std::unique_ptr<Weight>(std::make_unique<CountedWeight>(m));
  }
  std::int64_t kv_page_bytes(const KvShape& shape) const override {
    return real_.kv_page_bytes(shape);
  }

 protected:
  [[noreturn]] static void refuse() { check_failed(__FILE__, __LINE__, "compute", "only counts"); }
  void embed_(Tensor, const Weight&, Tensor, float) override { refuse(); }
  void matmul_(Tensor, Tensor, const Weight&, Tensor) override { refuse(); }
  void rms_norm_(Tensor, Tensor, Tensor, float) override { refuse(); }
  void layer_norm_(Tensor, Tensor, Tensor, Tensor, float) override { refuse(); }
  void rope_table_(Tensor, Tensor, Tensor, float) override { refuse(); }
  void rope_(Tensor, Tensor) override { refuse(); }
  void store_kv_(Tensor, Tensor, const KvCache&, const KvIndex&) override { refuse(); }
  void attention_(Tensor, Tensor, const KvCache&, const KvIndex&, const AttentionParams&) override {
    refuse();
  }
  void add_(Tensor, Tensor, Tensor) override { refuse(); }
  void activate_(Tensor, Activation) override { refuse(); }
  void glu_(Tensor, Tensor, Tensor, Activation) override { refuse(); }
  void softcap_(Tensor, float) override { refuse(); }
  void gather_rows_(Tensor, Tensor, Tensor) override { refuse(); }

 private:
  const Backend& real_;
};

}  // namespace

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

Status check_memory(const MemoryPlan& plan, const Backend& backend) {
  std::optional<std::int64_t> free = backend.free_memory();
  if (!free || plan.total() <= *free) return Ok{};
  return make_error(ErrorCode::kTooLarge,
                    "the plan needs {} MiB (weights {}, KV {}, activations {}), {} MiB are free; a "
                    "smaller --ctx or fewer --sequences need less",
                    plan.total() >> 20, plan.packed_bytes >> 20, plan.kv_bytes >> 20,
                    plan.activation_bytes >> 20, *free >> 20);
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

MemoryPlan plan_cache(const Model& model, const Backend& backend, const EngineOptions& options,
                      int context) {
  MemoryPlan plan;
  plan.context = context;
  plan.sequences = options.sequences;
  plan.page_size = options.page_size;
  plan.kv_dtype = options.kv_dtype;
  plan.spare_pages = backend.asynchronous() ? 1 : 0;
  plan.packed_bytes = model.totals().packed_bytes;
  // The runner adds hidden states and a slice of logits, which it may have to copy to the host.
  plan.activation_bytes =
      model.totals().activation_bytes +
      4LL * (static_cast<std::int64_t>(options.step_tokens) * model.info().dim +
             2LL * std::min(backend.head_rows(), options.step_tokens) * model.info().vocab);
  for (int layer = 0; layer < model.info().layers; ++layer) {
    CacheSpec spec = model.cache_spec(layer);
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
    KvShape shape{g.spec.kv_heads, g.spec.head_dim, plan.page_size, plan.kv_dtype};
    g.page_bytes = backend.kv_page_bytes(shape) * static_cast<std::int64_t>(g.layers.size());
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

Result<MemoryPlan> plan_memory(const ModelFile& file, EngineOptions& options, ModelInfo* info) {
  VT_RETURN_IF_ERROR(check_options(options));
  VT_TRY(auto backend, create_backend(options.backend, {1, options.isa}));
  if (options.commit_delay < 0) options.commit_delay = backend->asynchronous() ? 1 : 0;
  CountingBackend counting(*backend);
  ModelOptions model_options{
      .max_tokens = options.step_tokens, .context = options.context, .progress = {}};
  VT_TRY(auto model, load_model(file, counting, model_options));
  VT_TRY(int context, choose_context(options, model->info().context));
  if (options.sequences == 0) {
    EngineOptions one = options;
    one.sequences = 1;
    MemoryPlan probe = plan_cache(*model, *backend, one, context);
    std::int64_t free = backend->free_memory().value_or(std::int64_t{4} << 30);
    choose_sizes(options, free - probe.packed_bytes - probe.activation_bytes,
                 probe.kv_bytes_per_token, context);
  }
  MemoryPlan plan = plan_cache(*model, *backend, options, context);
  for (const TensorInfo& t : file.tensors())
    plan.file_bytes += static_cast<std::int64_t>(t.data.size());
  if (info != nullptr) *info = model->info();
  return plan;
}

}  // namespace vitrine
