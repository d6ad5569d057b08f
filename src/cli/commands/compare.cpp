// vitrine compare: how far a model's predictions are from another's on a text: a quantised file
// from the one it was made of, a draft from the model it drafts for.
#include <algorithm>
#include <cmath>

#include "cli/command.h"
#include "cli/output.h"
#include "cli/scoring.h"

namespace vitrine {
namespace {

struct Flags {
  ModelFlag model, reference;
  ScoringFlags scoring;
  EngineFlags engine;
  bool json = false;
};

struct Sums {
  double nats = 0, reference_nats = 0, divergence = 0, most = 0;
  std::int64_t agree = 0, positions = 0;
};

// Log probabilities in place; returns the best token.
std::size_t log_softmax(std::vector<double>& x) {
  auto best = std::max_element(x.begin(), x.end());
  double max = *best, sum = 0;
  for (double v : x) sum += std::exp(v - max);
  double shift = max + std::log(sum);
  for (double& v : x) v -= shift;
  return static_cast<std::size_t>(best - x.begin());
}

void add_position(Sums& sums, const std::vector<float>& model, const std::vector<float>& reference,
                  std::int32_t next) {
  std::vector<double> p(reference.begin(), reference.end()), q(model.begin(), model.end());
  bool agree = log_softmax(p) == log_softmax(q);
  double divergence = 0;
  for (std::size_t v = 0; v < p.size(); ++v)
    if (double weight = std::exp(p[v]); weight > 0) divergence += weight * (p[v] - q[v]);
  sums.nats -= q[next];
  sums.reference_nats -= p[next];
  sums.divergence += divergence;
  sums.most = std::max(sums.most, divergence);
  sums.agree += agree;
  ++sums.positions;
}

Result<std::shared_ptr<TokenStream>> run(Engine& engine, const std::vector<std::int32_t>& prompt) {
  Request request;
  request.prompt = prompt;
  request.max_tokens = 0;
  for (int i = 0; i + 1 < static_cast<int>(prompt.size()); ++i)
    request.logit_positions.push_back(i);
  return engine.submit(std::move(request));
}

Result<Sums> compare_all(Engine& model, Engine& reference, const Windows& windows) {
  Sums sums;
  for (std::size_t i = 0; i < windows.prompts.size(); ++i) {
    const auto& prompt = windows.prompts[i];
    VT_TRY(auto a, run(model, prompt));
    VT_TRY(auto b, run(reference, prompt));
    for (const auto& stream : {a, b})
      if (stream->wait().reason == FinishReason::kError)
        return make_error(ErrorCode::kInvalid, "window {}: {}", i, stream->wait().error);
    for (int t = 0; t + 1 < static_cast<int>(prompt.size()); ++t)
      add_position(sums, a->logits().at(t), b->logits().at(t), prompt[t + 1]);
    show_progress(i + 1, windows.prompts.size());
  }
  return sums;
}

Result<int> compare(Flags& f) {
  VT_TRY(auto file, f.model.open());
  VT_TRY(auto reference_file, f.reference.open());
  VT_TRY(auto tokenizer, load_tokenizer(*reference_file));
  VT_RETURN_IF_ERROR(f.scoring.choose_window(*reference_file, f.engine));
  VT_TRY(Windows windows, f.scoring.read(tokenizer.get(), f.reference.path));
  VT_TRY(auto model, f.engine.start(file));
  VT_TRY(auto reference, f.engine.start(reference_file));
  if (model->model().vocab != reference->model().vocab)
    return make_error(ErrorCode::kInvalid,
                      "the vocabularies have {} and {} tokens; they must be the same",
                      model->model().vocab, reference->model().vocab);
  VT_TRY(Sums sums, compare_all(*model, *reference, windows));
  auto n = static_cast<double>(sums.positions), bytes = static_cast<double>(windows.bytes);
  double ln2 = std::log(2.0);
  if (f.json)
    print_json(
        json::object{{"positions", sums.positions},
                     {"kl_nats", json::object{{"mean", sums.divergence / n}, {"max", sums.most}}},
                     {"top1_agreement", static_cast<double>(sums.agree) / n},
                     {"bits_per_byte", sums.nats / ln2 / bytes},
                     {"reference_bits_per_byte", sums.reference_nats / ln2 / bytes}});
  else
    fmt::print(
        "{} positions\nKL divergence from the reference: mean {:.6f} nats, at most {:.4f}\nsame "
        "best token at {:.2f} % of positions\nbits per byte: {:.4f}, reference {:.4f}\n",
        sums.positions, sums.divergence / n, sums.most, 100 * static_cast<double>(sums.agree) / n,
        sums.nats / ln2 / bytes, sums.reference_nats / ln2 / bytes);
  return 0;
}

std::function<int()> add(CLI::App& app) {
  auto f = std::make_shared<Flags>();
  f->model.add(app);
  f->reference.add(app, "reference");
  f->scoring.add(app);
  app.add_flag("--json", f->json, "print one JSON document");
  f->engine.add(app);
  return [f] {
    auto code = compare(*f);
    return code.ok() ? *code : fail(code.error());
  };
}

}  // namespace

extern const Command kCommand_compare;
const Command kCommand_compare{"compare", 64, "a model's predictions against another's", add};

}  // namespace vitrine
