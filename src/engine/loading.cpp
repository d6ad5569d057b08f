#include "engine/loading.h"

#include "base/draw_weight.h"
#include "base/log.h"
#include "engine/planning.h"
#include "models/model.h"

namespace vitrine {
namespace {

EngineInfo describe(const Model& model, const Backend& backend) {
  const ModelInfo& m = model.info();
  const WeightLoader::Totals& w = model.totals();
  return {.arch = m.arch,
          .layers = m.layers,
          .dim = m.dim,
          .heads = m.heads,
          .vocab = m.vocab,
          .model_context = m.context,
          .matmul_weights = w.matmul_weights,
          .matmul_bytes = w.matmul_bytes,
          .head_weights = w.head_weights,
          .head_bytes = w.head_bytes,
          .backend = backend.name(),
          .backend_description = backend.description(),
          .queues_steps = backend.asynchronous(),
          .flops_per_byte = backend.asynchronous() ? 200.0 : 20.0,
          .exact = backend.exact()};
}

}  // namespace

Result<std::unique_ptr<LoadedModel>> load_onto(std::unique_ptr<Backend> backend,
                                               std::shared_ptr<const ModelFile> file,
                                               EngineOptions options) {
  auto out = std::make_unique<LoadedModel>();
  out->backend = std::move(backend);
  // Counted first: a context or a size that cannot be is refused before anything is loaded.
  ModelInfo info;
  VT_TRY(out->plan, plan_memory(*file, *out->backend, options, &info));
  VT_RETURN_IF_ERROR(check_memory(out->plan, *out->backend));
  if (static_cast<std::size_t>(info.vocab) > kMaxVocab)
    return make_error(ErrorCode::kUnsupported,
                      "a vocabulary of {} tokens; sampling takes at most {}", info.vocab,
                      kMaxVocab);
  // The draft model's tables first: those that steps are fed from are the last ones made.
  if (options.drafts()) {
    if (const int context = out->plan.draft.front().context; context < out->plan.context)
      LogLine(LogLevel::kWarn, "the draft model's context is shorter: longer texts have no guesses")
          .field("context", std::int64_t{out->plan.context})
          .field("draft_context", std::int64_t{context});
    VT_TRY(out->draft, DraftModel::create(options, *out->backend, out->plan.draft.front()));
  }
  ModelOptions model_options{options.step_tokens, out->plan.context, options.progress};
  VT_TRY(out->model, load_model(*file, *out->backend, model_options));
  VT_TRY(out->scorer,
         Scorer::create(*out->model, *out->backend, out->plan.sequences, options.step_tokens));
  VT_TRY(out->runner,
         Runner::create(*out->model, *out->backend, *out->scorer, out->plan, options.step_tokens));
  out->info = describe(*out->model, *out->backend);
  out->matmul_type = out->model->totals().matmul_type;
  out->options = std::move(options);
  out->file = std::move(file);
  return out;
}

Result<std::unique_ptr<LoadedModel>> load_for_serving(std::shared_ptr<const ModelFile> file,
                                                      EngineOptions options) {
  VT_RETURN_IF_ERROR(check_options(options));
  VT_TRY(auto backend, create_backend(options.backend, backend_options(options)));
  return load_onto(std::move(backend), std::move(file), std::move(options));
}

}  // namespace vitrine
