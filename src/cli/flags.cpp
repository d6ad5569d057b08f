#include "cli/flags.h"

#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "builtin/builtin.h"
#include "cli/output.h"
#include "engine/generation.h"
#include "kernels/backend.h"
#include "sampling/presets.h"
#include "sampling/token_texts.h"
#include "tokenizer/shared_ids.h"
#include "tokenizer/token_words.h"

namespace vitrine {
namespace {

// A percentage that replaces itself, on a terminal only.
class LoadProgress {
 public:
  LoadProgress(const ModelFile& file, const EngineFlags::Watch& watch)
      : watch_(watch), show_(isatty(STDERR_FILENO) != 0) {
    for (const TensorInfo& t : file.tensors()) total_ += static_cast<std::int64_t>(t.data.size());
    (*this)(0);
  }
  void operator()(std::int64_t bytes) {
    done_ += bytes;
    if (watch_) watch_(done_, total_);
    int percent =
        static_cast<int>(std::min<std::int64_t>(100, total_ > 0 ? 100 * done_ / total_ : 100));
    if (!show_ || percent == shown_) return;
    fmt::print(stderr, "\rloading {:3}% of {}", shown_ = percent, human_bytes(total_));
    std::fflush(stderr);
  }
  void end() const {
    if (show_) fmt::print(stderr, "\r\033[K");
  }

 private:
  const EngineFlags::Watch& watch_;
  bool show_;
  std::int64_t total_ = 0, done_ = 0;
  int shown_ = -1;
};

Range<int> range(EngineRange r) { return {r.least, r.most}; }

template <typename T>
bool parse_number(std::string_view text, T& value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Choices policy_names() { return {policy_name(Policy::kContinuous), policy_name(Policy::kStatic)}; }

void ModelFlag::add(const CommandLine& line, const char* name) {
  line.option(name, path, "a GGUF file, a Hugging Face folder, or a name of `vitrine models`")
      .required();
}

void ModelFlag::add_optional(const CommandLine& line, const char* built_in) {
  path = built_in;
  line.option("model", path, "a GGUF file, a Hugging Face folder, or a name of `vitrine models`")
      .show_default();
}

std::string models_folder() {
  const char* folder = std::getenv("VITRINE_MODELS");
  return folder != nullptr && *folder != 0 ? folder : "models";
}

Result<std::shared_ptr<const ModelFile>> ModelFlag::open() const {
  namespace fs = std::filesystem;
  // A built-in name means the same in every folder; a file of that name is ./NAME.
  if (const BuiltinModel* model = find_builtin(path)) {
    VT_TRY(auto file, ModelFile::open_gguf(model->bytes, path));
    return std::shared_ptr<const ModelFile>(std::move(file));
  }
  std::error_code ignored;
  std::string found = path;
  if (!fs::exists(path, ignored) && path.find('/') == std::string::npos) {
    fs::path in_folder = fs::path(models_folder()) / path;
    if (fs::exists(in_folder, ignored))
      found = in_folder.string();
    else if (fs::exists(in_folder.string() + ".gguf", ignored))
      found = in_folder.string() + ".gguf";
  }
  VT_TRY(auto file, ModelFile::open(found));
  return std::shared_ptr<const ModelFile>(std::move(file));
}

void EngineFlags::add(const CommandLine& line) {
  using Ranges = EngineRanges;
  Choices backends{"auto"};
  for (const BackendDef* b : all_backends()) backends.emplace_back(b->name);
  line.option("--backend", options.backend, backends, "what computes").show_default();
  line.option("--device", options.device, range(Ranges::device),
              "which of the backend's devices: a number from 0; cpu and ref have one")
      .show_default();
  line.option("--threads", options.threads, range(Ranges::threads),
              "compute threads; 0: as many as there are CPUs");
  line.option("--isa", options.isa, {"avx2", "avx512", "vnni", "bf16", "amx"},
              "cpu backend: an instruction set; default: the best there is");
  line.flag("--deterministic", options.deterministic,
            "cuda backend: a row's bits do not depend on the batch, as they never do on the cpu");
  line.flag("--sync-ops", options.synchronous,
            "cuda backend: wait for every op, so that one that fails is named");
  line.option("--ctx", options.context, range(Ranges::context),
              fmt::format("context in tokens; default: the model's, at most {}", kDefaultContext));
  line.option("--sequences", options.sequences, range(Ranges::sequences),
              "sequences that run at once; 0: as memory allows")
      .show_default();
  line.option("--kv-tokens", options.kv_tokens, range(Ranges::kv_tokens),
              "positions of the KV pool; default: sequences x context");
  line.option("--step-tokens", options.step_tokens, range(Ranges::step_tokens),
              "tokens of the largest step")
      .show_default();
  line.option("--page-size", options.page_size, range(Ranges::page_size),
              "positions of a KV page, a multiple of 16")
      .show_default();
  kv_option_ = line.option("--kv-type", kv_type, {"f32", "f16", "bf16"},
                           "type of the KV cache; without it f32 with the backend ref");
  kv_option_.show_default();
  spec_option_ =
      line.option(
              "--spec", spec, {"auto", "off", "ngram", "suffix", "draft"},
              "speculative decoding: guess the next tokens from the prompt (ngram), also from "
              "earlier answers (suffix), or by a smaller model (draft), and compute them beside "
              "the last one; never changes a token")
          .show_default();
  line.option(
      "--draft", draft.path,
      "the model that guesses, with the same tokens: as the model is given; turns on --spec "
      "draft. The built-in model demo has one (draft)");
  line.option("--spec-tokens", options.spec_tokens, range(Ranges::spec_tokens),
              "guesses for a sequence and step, at most")
      .show_default();
  line.option("--spec-mib", options.spec_mib, range(Ranges::spec_mib),
              "memory for the texts that guesses are made of")
      .show_default();
}

void EngineFlags::add_serving(const CommandLine& line) {
  using Ranges = EngineRanges;
  options.sequences = 0;
  line.option("--max-queue", options.max_queue, range(Ranges::max_queue),
              "sequences that may wait; one more gets 429, unless its key has less than its share")
      .show_default();
  line.option("--policy", policy, policy_names(),
              "continuous: batches are re-decided every step; static: a full batch runs to its "
              "slowest member, for comparison")
      .show_default();
  line.option("--static-wait-ms", options.static_wait_ms, range(Ranges::static_wait_ms),
              "policy static: how long a batch that is not full waits")
      .show_default();
  line.option("--mixed-step-ms", options.mixed_step_ms, range(Ranges::mixed_step_ms),
              "about how long a step may prefill while others decode; 0: no limit")
      .show_default();
  line.flag("--no-prefix-cache", no_prefix_cache, "compute every prompt anew");
  line.option("--trace-mib", options.trace_mib, range(Ranges::trace_mib),
              "memory for the log of the last steps, which the page and /api/steps show; 0: none")
      .show_default();
  line.flag("--trace", options.trace_pages,
            "log every change of a page of the KV cache, also while nobody watches");
}

// A draft model that is named is used, or the reason is told.
Status EngineFlags::choose_draft(const ModelFile& file, EngineOptions& out) const {
  const bool named = !draft.path.empty();
  if (named && !spec_option_.given()) out.spec = SpecMode::kDraft;
  const bool wanted = out.spec == SpecMode::kDraft || out.spec == SpecMode::kAuto;
  if (named && !wanted)
    return make_error(ErrorCode::kInvalid,
                      "--draft: found {} with --spec {}, which does not use it; allowed with draft "
                      "and auto",
                      draft.path, spec);
  if (!wanted) return Ok{};
  ModelFlag from = draft;
  if (!named && file.path() == "demo" && find_builtin("demo") != nullptr) from.path = "draft";
  if (from.path.empty()) {
    if (out.spec == SpecMode::kAuto) return Ok{};
    return make_error(ErrorCode::kInvalid,
                      "--spec draft: found no --draft; allowed without one only for the built-in "
                      "model demo, any other needs --draft MODEL");
  }
  const auto about = [&](const Error& error) {
    return make_error(error.code, "--draft: {}", error.message);
  };
  auto opened = from.open();
  if (!opened.ok()) return about(opened.error());
  auto mine = load_tokenizer(file), other = load_tokenizer(**opened);
  if (!mine.ok()) return mine.error();
  if (!other.ok()) return about(other.error());
  if ((*mine == nullptr) != (*other == nullptr))
    return make_error(ErrorCode::kInvalid,
                      "--draft: {} has no tokenizer and {} has one, so their tokens cannot be "
                      "compared; allowed is a draft with the same tokens",
                      *mine == nullptr ? file.path() : from.path,
                      *mine == nullptr ? from.path : file.path());
  if (*mine != nullptr) {
    auto ids = shared_ids(**mine, file.path(), **other, from.path);
    if (!ids.ok()) return about(ids.error());
    out.draft.ids = *ids;
  }
  out.draft.file = std::move(*opened);
  return Ok{};
}

Result<EngineOptions> EngineFlags::resolve(const ModelFile& file) const {
  EngineOptions out = options;
  out.prefix_cache = !no_prefix_cache;
  out.policy = policy == policy_name(Policy::kStatic) ? Policy::kStatic : Policy::kContinuous;
  out.spec = *spec_mode(spec);
  const bool exact = options.backend == "ref" && !kv_option_.given();
  out.kv_dtype = exact || kv_type == "f32" ? DType::kF32
                 : kv_type == "f16"        ? DType::kF16
                                           : DType::kBF16;
  VT_RETURN_IF_ERROR(choose_draft(file, out));
  return out;
}

Result<std::unique_ptr<Engine>> EngineFlags::start(std::shared_ptr<const ModelFile> file,
                                                   const Watch& watch) const {
  VT_TRY(EngineOptions options, resolve(*file));
  LoadProgress progress(*file, watch);
  options.progress = [&](std::int64_t bytes) { progress(bytes); };
  auto engine = Engine::create(std::move(file), options);
  progress.end();
  if (engine.ok()) VT_RETURN_IF_ERROR((*engine)->start());
  return engine;
}

void SamplingFlags::add(const CommandLine& line) {
  for (const Param* p : all_params()) {
    std::string flag = "--" + std::string(p->name);
    std::replace(flag.begin(), flag.end(), '_', '-');
    auto value = std::make_unique<std::optional<double>>();
    line.option(flag, *value, {p->min, p->max, p->min_excluded, p->integer}, p->help);
    values.emplace_back(p, std::move(value));
  }
  line.option("--seed", seed, {0, UINT64_MAX},
              "seed of the random numbers; without one, it is drawn and reported");
  Choices samplers, presets;
  for (const SamplerDef* s : all_samplers()) samplers.emplace_back(s->name);
  for (const Preset& p : all_presets()) presets.emplace_back(p.name);
  line.option("--samplers", order, samplers, "order of the transforms").comma_separated();
  line.option("--logit-bias", bias, "ID:BIAS, added to that token's logit").comma_separated();
  line.option("--allowed-ids", allowed_ids, "token ids with commas: no others are drawn");
  line.option("--bad-word", bad_words, "never say this; may be given several times").repeated();
  line.option("--dry-breaker", breakers,
              "where repetitions that --dry-multiplier sees end; may be given several times; "
              "default: newline, colon, quotation mark, asterisk")
      .repeated();
  line.option("--preset", preset, presets, "settings by use");
}

Status SamplingFlags::read_tokens(SamplingParams& params, const Tokenizer* tokenizer) const {
  if (!allowed_ids.empty()) {
    VT_TRY(auto ids, parse_ids(allowed_ids, "--allowed-ids"));
    VT_RETURN_IF_ERROR(params.set_allowed_ids(std::move(ids)));
  }
  const auto named = [](const char* flag, const Error& error) {
    return make_error(error.code, "{}: {}", flag, error.message);
  };
  const char* flag = !bad_words.empty() ? "--bad-word" : "--dry-breaker";
  if (tokenizer == nullptr && !(bad_words.empty() && breakers.empty()))
    return make_error(ErrorCode::kNotFound, "{}: the model has no tokenizer, so there are no words",
                      flag);
  if (!bad_words.empty()) {
    auto words = tokens_of_words(*tokenizer, bad_words);
    if (!words.ok()) return named("--bad-word", words.error());
    VT_RETURN_IF_ERROR(params.set_bad_words(std::move(*words)));
  }
  if (!breakers.empty()) {
    auto ids = tokens_with(*tokenizer, breakers);
    if (!ids.ok()) return named("--dry-breaker", ids.error());
    params.set_breakers(std::move(*ids));
  }
  return Ok{};
}

Result<SamplingParams> SamplingFlags::resolve(const GenerationDefaults& defaults,
                                              const Tokenizer* tokenizer) const {
  SamplingParams flags, preset_layer;
  for (const auto& [param, value] : values)
    if (*value) VT_RETURN_IF_ERROR(flags.set(param->name, **value));
  if (seed) flags.set_seed(*seed);
  if (!order.empty()) VT_RETURN_IF_ERROR(flags.set_order(order));
  std::vector<LogitBias> biases;
  for (const std::string& entry : bias) {
    LogitBias b{};
    auto colon = entry.find(':');
    if (colon == std::string::npos ||
        !parse_number(std::string_view(entry).substr(0, colon), b.id) ||
        !parse_number(std::string_view(entry).substr(colon + 1), b.bias))
      return make_error(ErrorCode::kInvalid, "--logit-bias: found '{}', expected ID:BIAS", entry);
    biases.push_back(b);
  }
  if (!biases.empty()) VT_RETURN_IF_ERROR(flags.set_logit_bias(std::move(biases)));
  if (!preset.empty()) {
    VT_TRY(preset_layer, preset_params(preset));
  }
  VT_RETURN_IF_ERROR(read_tokens(flags, tokenizer));
  VT_TRY(SamplingParams model, generation_layer(defaults));
  SamplingParams out = vitrine::resolve({&flags, &preset_layer, &model});
  if (tokenizer != nullptr && out.get("dry_multiplier") > 0 && !out.has_breakers())
    out.set_breakers(tokens_with(*tokenizer, default_breakers()).value());
  if (out.wants_texts()) {
    if (tokenizer == nullptr || defaults.eos_ids.empty())
      return make_error(ErrorCode::kNotFound, "--infill: the model has no {}",
                        tokenizer == nullptr ? "tokenizer, so its tokens have no texts"
                                             : "token that ends a text");
    out.set_texts(std::make_shared<const TokenTexts>(token_texts(*tokenizer), defaults.eos_ids));
  }
  return out;
}

Result<std::vector<std::int32_t>> parse_ids(const std::string& text, const char* what) {
  std::vector<std::int32_t> ids;
  std::size_t at = 0;
  while (at <= text.size() && !text.empty()) {
    std::size_t comma = std::min(text.find(',', at), text.size());
    std::string_view item = std::string_view(text).substr(at, comma - at);
    std::int32_t id = 0;
    if (!parse_number(item, id))
      return make_error(ErrorCode::kInvalid, "{}: found '{}', expected whole numbers with commas",
                        what, item);
    ids.push_back(id);
    at = comma + 1;
  }
  return ids;
}

Result<std::unique_ptr<Tokenizer>> load_tokenizer(const ModelFile& file) {
  auto tokenizer = Tokenizer::load(file);
  if (!tokenizer.ok() && tokenizer.error().code == ErrorCode::kNotFound)
    return std::unique_ptr<Tokenizer>();
  return tokenizer;
}

void add_pooling_flag(const CommandLine& line, std::string& name) {
  line.option("--pooling", name, {"mean", "last"},
              "of embeddings: over all tokens, or the last token's state; default: "
              "what the model's files say, otherwise mean");
}

Result<Pooling> pooling_flag(const std::string& name, const ModelFile& file) {
  if (name.empty()) return default_pooling(file.generation().pooling);
  auto pooling = parse_pooling(name);
  if (pooling.ok()) return *pooling;
  return make_error(ErrorCode::kInvalid, "--pooling: {}", pooling.error().message);
}

}  // namespace vitrine
