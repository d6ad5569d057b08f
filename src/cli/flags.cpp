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

namespace vitrine {
namespace {

// A percentage that replaces itself, on a terminal only.
class LoadProgress {
 public:
  explicit LoadProgress(const ModelFile& file) : show_(isatty(STDERR_FILENO) != 0) {
    for (const TensorInfo& t : file.tensors()) total_ += static_cast<std::int64_t>(t.data.size());
  }
  void operator()(std::int64_t bytes) {
    done_ += bytes;
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
  bool show_;
  std::int64_t total_ = 0, done_ = 0;
  int shown_ = -1;
};

template <typename T>
bool parse_number(std::string_view text, T& value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

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
  std::string backends = "auto";
  for (const BackendDef* b : all_backends()) backends += fmt::format(", {}", b->name);
  line.option("--backend", options.backend, backends).show_default();
  line.option("--device", options.device,
              "which of the backend's devices: a number from 0; cpu and ref have one")
      .show_default();
  line.option("--threads", options.threads, "compute threads; 0: as many as there are CPUs");
  line.option("--isa", options.isa,
              "cpu backend: avx2, avx512, vnni, bf16 or amx; default: the best there is");
  line.flag("--deterministic", options.deterministic,
            "cuda backend: a row's bits do not depend on the batch, as they never do on the cpu");
  line.flag("--sync-ops", options.synchronous,
            "cuda backend: wait for every op, so that one that fails is named");
  line.option("--ctx", options.context,
              fmt::format("context in tokens; default: the model's, at most {}", kDefaultContext));
  line.option("--sequences", options.sequences, "sequences that run at once; 0: as memory allows")
      .show_default();
  line.option("--kv-tokens", options.kv_tokens,
              "positions of the KV pool; default: sequences x context");
  line.option("--step-tokens", options.step_tokens, "tokens of the largest step").show_default();
  line.option("--page-size", options.page_size, "positions of a KV page").show_default();
  line.option("--kv-type", kv_type, "type of the KV cache: f32, f16 or bf16").show_default();
}

void EngineFlags::add_serving(const CommandLine& line) {
  options.sequences = 0;
  line.option("--max-queue", options.max_queue, "requests that may wait; one more gets 429")
      .show_default();
  line.option("--policy", policy,
              "continuous: batches are re-decided every step; static: a full batch runs to its "
              "slowest member, for comparison")
      .show_default();
  line.option("--static-wait-ms", options.static_wait_ms,
              "policy static: how long a batch that is not full waits")
      .show_default();
  line.option("--mixed-step-ms", options.mixed_step_ms,
              "about how long a step may prefill while others decode; 0: no limit")
      .show_default();
  line.flag("--no-prefix-cache", no_prefix_cache, "compute every prompt anew");
}

Result<EngineOptions> EngineFlags::resolve() const {
  EngineOptions out = options;
  out.prefix_cache = !no_prefix_cache;
  if (policy == "static")
    out.policy = Policy::kStatic;
  else if (policy != "continuous")
    return make_error(ErrorCode::kInvalid, "--policy: found '{}', allowed continuous, static",
                      policy);
  if (kv_type == "f32")
    out.kv_dtype = DType::kF32;
  else if (kv_type == "f16")
    out.kv_dtype = DType::kF16;
  else if (kv_type == "bf16")
    out.kv_dtype = DType::kBF16;
  else
    return make_error(ErrorCode::kInvalid, "--kv-type: found '{}', allowed f32, f16, bf16",
                      kv_type);
  return out;
}

Result<std::unique_ptr<Engine>> EngineFlags::start(std::shared_ptr<const ModelFile> file) const {
  VT_TRY(EngineOptions options, resolve());
  LoadProgress progress(*file);
  options.progress = [&](std::int64_t bytes) { progress(bytes); };
  auto engine = Engine::create(std::move(file), options);
  progress.end();
  if (engine.ok()) (*engine)->start();
  return engine;
}

void SamplingFlags::add(const CommandLine& line) {
  for (const Param* p : all_params()) {
    std::string flag = "--" + std::string(p->name);
    std::replace(flag.begin(), flag.end(), '_', '-');
    auto value = std::make_unique<std::optional<double>>();
    line.option(flag, *value, p->help);
    values.emplace_back(p, std::move(value));
  }
  line.option("--seed", seed, "seed of the random numbers; without one, it is drawn and reported")
      .whole_number();
  line.option("--samplers", order, "order of the transforms, by name").comma_separated();
  line.option("--logit-bias", bias, "ID:BIAS, added to that token's logit").comma_separated();
  std::string presets;
  for (const Preset& p : all_presets())
    presets += fmt::format("{}{}", presets.empty() ? "" : ", ", p.name);
  line.option("--preset", preset, "settings by use: " + presets);
}

Result<SamplingParams> SamplingFlags::resolve(const GenerationDefaults& defaults) const {
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
  VT_TRY(SamplingParams model, generation_layer(defaults));
  return vitrine::resolve({&flags, &preset_layer, &model});
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
  line.option("--pooling", name,
              "of embeddings: mean (over all tokens) or last (the last token's state); default: "
              "what the model's files say, otherwise mean");
}

Result<Pooling> pooling_flag(const std::string& name, const ModelFile& file) {
  if (name.empty()) return default_pooling(file.generation().pooling);
  auto pooling = parse_pooling(name);
  if (pooling.ok()) return *pooling;
  return make_error(ErrorCode::kInvalid, "--pooling: {}", pooling.error().message);
}

}  // namespace vitrine
