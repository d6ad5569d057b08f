// vitrine compare: how far a model's predictions are from another's on a text: a quantised file
// from the one it was made of, a draft from the model it drafts for, one engine from another.
// Either side may be logits that were saved (logits_file.h) instead of a model.
#include <algorithm>
#include <cmath>
#include <optional>

#include "cli/command.h"
#include "cli/logits_file.h"
#include "cli/output.h"
#include "cli/scoring.h"
#include "sampling/logprobs.h"

namespace vitrine {
namespace {

struct Flags {
  ModelFlag model, reference;
  ScoringFlags scoring;
  EngineFlags engine;
  bool json = false;
};

// Where one side's logits come from: saved ones, or an engine.
struct Side {
  std::string path;
  std::optional<LogitsFile> saved;
  std::shared_ptr<const ModelFile> file;
  std::unique_ptr<Engine> engine;
  int vocab = 0;

  static Result<Side> open(const ModelFlag& flag) {
    Side side;
    side.path = flag.path;
    if (LogitsFile::recognises(flag.path)) {
      VT_TRY(side.saved, LogitsFile::open(flag.path));
      side.vocab = side.saved->vocab();
      return side;
    }
    auto opened = flag.open();
    // Anything may be neither; what begins as a model is a damaged one.
    if (!opened.ok() && opened.error().code == ErrorCode::kUnsupported)
      return make_error(ErrorCode::kUnsupported,
                        "{}; allowed are a model and a file of logits (vitrine perplexity "
                        "--save-logits)",
                        opened.error().message);
    VT_TRY(side.file, std::move(opened));
    return side;
  }
  Status start(const EngineFlags& flags) {
    if (saved) return Ok{};
    VT_TRY(engine, flags.start(file));
    vocab = engine->info().vocab;
    return Ok{};
  }
};

// The rows of one window.
struct Rows {
  const LogitsFile* saved = nullptr;
  std::size_t window = 0;
  std::shared_ptr<TokenStream> stream;

  std::span<const float> at(std::size_t t) const {
    if (saved != nullptr) return saved->row(window, t);
    return stream->logits().at(static_cast<int>(t));
  }
  Status wait() const {
    if (stream == nullptr) return Ok{};
    const Finish& finish = stream->wait();
    if (finish.reason != FinishReason::kError) return Ok{};
    return make_error(ErrorCode::kInvalid, "window {}: {}", window, finish.error);
  }
};

Result<Rows> rows_of(const Side& side, std::size_t window,
                     const std::vector<std::int32_t>& prompt) {
  if (side.saved) return Rows{&*side.saved, window, nullptr};
  VT_TRY(auto stream, submit_for_logits(*side.engine, prompt));
  return Rows{nullptr, window, std::move(stream)};
}

struct Sums {
  double nats = 0, reference_nats = 0;
  std::vector<double> divergence;  // by position
  std::int64_t agree = 0;

  double mean() const {
    double sum = 0;
    for (double d : divergence) sum += d;
    return sum / static_cast<double>(divergence.size());
  }
  double quantile(double share) {
    auto at = static_cast<std::size_t>(share * static_cast<double>(divergence.size() - 1) + 0.5);
    std::nth_element(divergence.begin(), divergence.begin() + static_cast<std::ptrdiff_t>(at),
                     divergence.end());
    return divergence[at];
  }
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

void add_position(Sums& sums, std::span<const float> model, std::span<const float> reference,
                  std::int32_t next) {
  std::vector<double> p(reference.begin(), reference.end()), q(model.begin(), model.end());
  bool agree = log_softmax(p) == log_softmax(q);
  double divergence = 0;
  for (std::size_t v = 0; v < p.size(); ++v)
    if (double weight = std::exp(p[v]); weight != 0) divergence += weight * (p[v] - q[v]);
  sums.nats -= q[next];
  sums.reference_nats -= p[next];
  sums.divergence.push_back(divergence);
  sums.agree += agree;
}

Result<Sums> compare_all(const Side& model, const Side& reference, const Windows& windows) {
  Sums sums;
  for (std::size_t i = 0; i < windows.prompts.size(); ++i) {
    const auto& prompt = windows.prompts[i];
    VT_TRY(Rows a, rows_of(model, i, prompt));
    VT_TRY(Rows b, rows_of(reference, i, prompt));
    VT_RETURN_IF_ERROR(a.wait());
    VT_RETURN_IF_ERROR(b.wait());
    for (std::size_t t = 0; t + 1 < prompt.size(); ++t) {
      for (std::span<const float> row : {a.at(t), b.at(t)})
        if (LogitsStatus status = scan_logits(row).status; status != LogitsStatus::kOk)
          return make_error(ErrorCode::kInvalid, "window {}, position {}: {}", i, t,
                            logits_status_text(status));
      add_position(sums, a.at(t), b.at(t), prompt[t + 1]);
      if (!std::isfinite(sums.divergence.back()))
        return make_error(ErrorCode::kInvalid,
                          "window {}, position {}: the logits have no finite divergence", i, t);
    }
    show_progress(i + 1, windows.prompts.size());
  }
  return sums;
}

// The windows of saved logits; both sides' must be the same.
Result<Windows> saved_windows(const Side& one, const Side& other) {
  Windows out;
  out.bytes = one.saved->text_bytes();
  for (const LogitsFile::Window& w : one.saved->windows())
    out.prompts.emplace_back(w.tokens.begin(), w.tokens.end());
  if (!other.saved) return out;
  const auto& theirs = other.saved->windows();
  bool same = theirs.size() == out.prompts.size();
  for (std::size_t i = 0; same && i < theirs.size(); ++i)
    same = std::equal(theirs[i].tokens.begin(), theirs[i].tokens.end(), out.prompts[i].begin(),
                      out.prompts[i].end());
  if (!same)
    return make_error(ErrorCode::kInvalid, "{} and {}: logits of different texts or windows",
                      one.path, other.path);
  return out;
}

Result<Windows> choose_windows(Flags& f, const Side& model, const Side& reference) {
  if (!model.saved && !reference.saved) {
    if (f.scoring.text_file.empty())
      return make_error(ErrorCode::kInvalid,
                        "a text file is needed, unless one side is a file of logits");
    VT_TRY(auto tokenizer, load_tokenizer(*reference.file));
    VT_RETURN_IF_ERROR(f.scoring.choose_window(*reference.file, f.engine));
    return f.scoring.read(tokenizer.get(), f.reference.path);
  }
  if (!f.scoring.text_file.empty())
    return make_error(ErrorCode::kInvalid,
                      "{}: a file of logits has its own text; none is taken besides",
                      f.scoring.text_file);
  VT_TRY(Windows windows,
         reference.saved ? saved_windows(reference, model) : saved_windows(model, reference));
  for (const auto& prompt : windows.prompts)
    f.engine.options.context = std::max(f.engine.options.context, static_cast<int>(prompt.size()));
  return windows;
}

Result<int> compare(Flags& f) {
  VT_TRY(Side model, Side::open(f.model));
  VT_TRY(Side reference, Side::open(f.reference));
  VT_TRY(Windows windows, choose_windows(f, model, reference));
  VT_RETURN_IF_ERROR(model.start(f.engine));
  VT_RETURN_IF_ERROR(reference.start(f.engine));
  if (model.vocab != reference.vocab)
    return make_error(ErrorCode::kInvalid,
                      "the vocabularies have {} and {} tokens; they must be the same", model.vocab,
                      reference.vocab);
  VT_TRY(Sums sums, compare_all(model, reference, windows));
  auto positions = static_cast<std::int64_t>(sums.divergence.size());
  auto n = static_cast<double>(positions), bytes = static_cast<double>(windows.bytes);
  double ln2 = std::log(2.0), mean = sums.mean();
  if (f.json)
    print_json(json::object{{"positions", positions},
                            {"kl_nats", json::object{{"mean", mean},
                                                     {"median", sums.quantile(0.5)},
                                                     {"p99", sums.quantile(0.99)},
                                                     {"max", sums.quantile(1)}}},
                            {"top1_agreement", static_cast<double>(sums.agree) / n},
                            {"bits_per_byte", sums.nats / ln2 / bytes},
                            {"reference_bits_per_byte", sums.reference_nats / ln2 / bytes}});
  else
    fmt::print(
        "{} positions\nKL divergence from the reference, nats: mean {:.3e}, median {:.3e}, 99 % "
        "{:.3e}, "
        "at most {:.3e}\nsame best token at {:.2f} % of positions\nbits per byte: {:.4f}, "
        "reference "
        "{:.4f}\n",
        positions, mean, sums.quantile(0.5), sums.quantile(0.99), sums.quantile(1),
        100 * static_cast<double>(sums.agree) / n, sums.nats / ln2 / bytes,
        sums.reference_nats / ln2 / bytes);
  return 0;
}

Action add(const CommandLine& line) {
  auto f = std::make_shared<Flags>();
  f->model.add(line);
  f->reference.add(line, "reference");
  for (const char* side : {"model", "reference"})
    line.get(side).description("a model, or a file of logits (vitrine perplexity --save-logits)");
  f->scoring.add(line);
  line.get("text").required(false);
  line.flag("--json", f->json, "print one JSON document");
  f->engine.add(line);
  return [f] { return compare(*f); };
}

}  // namespace

extern const Command kCommand_compare;
const Command kCommand_compare{"compare", 64, "a model's predictions against another's", add};

}  // namespace vitrine
