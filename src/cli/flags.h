// Flags that several commands share, and what they become.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "engine/engine.h"
#include "sampling/params.h"
#include "tokenizer/tokenizer.h"

namespace vitrine {

// The name of a built-in model, a path, or the name of a model in the models folder.
struct ModelFlag {
  std::string path;
  void add(const CommandLine& line, const char* name = "model");
  // For commands that can do without: the built-in model of that name is taken then.
  void add_optional(const CommandLine& line, const char* built_in);
  Result<std::shared_ptr<const ModelFile>> open() const;
};
// $VITRINE_MODELS, otherwise `models` in the current folder. May not exist.
std::string models_folder();

// What --policy may be.
Choices policy_names();

// --backend, --device, --threads, --isa, --ctx, --kv-type, --sequences and others; with
// add_serving() those that matter to a server: queue, policy, prefix cache.
struct EngineFlags {
  EngineOptions options;
  std::string kv_type = "f16", policy = "continuous", spec = "off";
  ModelFlag draft;
  bool no_prefix_cache = false;
  void add(const CommandLine& line);
  void add_serving(const CommandLine& line);
  // For this model, with the draft model that guesses for it; its tokens are compared.
  Result<EngineOptions> resolve(const ModelFile& file) const;
  bool speculates() const { return spec != "off" || !draft.path.empty(); }
  // Loads the model; a progress line on stderr when that is a terminal. `watch` hears how much of
  // the file's weights is done.
  using Watch = std::function<void(std::int64_t bytes, std::int64_t total)>;
  Result<std::unique_ptr<Engine>> start(std::shared_ptr<const ModelFile> file,
                                        const Watch& watch = {}) const;

 private:
  Status choose_draft(const ModelFile& file, EngineOptions& out) const;
  Option spec_option_, kv_option_;
};

// One flag per sampling parameter, and --seed, --samplers, --logit-bias, --allowed-ids, --bad-word,
// --dry-breaker, --preset.
struct SamplingFlags {
  std::vector<std::pair<const Param*, std::unique_ptr<std::optional<double>>>> values;
  std::optional<std::uint64_t> seed;
  std::vector<std::string> order, bias, bad_words, breakers;
  std::string allowed_ids;
  std::string preset;
  void add(const CommandLine& line);
  // Flags, then the preset, then what the model's authors ask for. `tokenizer` may be null.
  Result<SamplingParams> resolve(const GenerationDefaults& defaults,
                                 const Tokenizer* tokenizer) const;

 private:
  Status read_tokens(SamplingParams& params, const Tokenizer* tokenizer) const;
};

// --pooling, of embeddings; empty: what the model's files ask for.
void add_pooling_flag(const CommandLine& line, std::string& name);
Result<Pooling> pooling_flag(const std::string& name, const ModelFile& file);

// "5,6,7"
Result<std::vector<std::int32_t>> parse_ids(const std::string& text, const char* what);
// None when the model has no tokenizer; an error when it has a broken one.
Result<std::unique_ptr<Tokenizer>> load_tokenizer(const ModelFile& file);

}  // namespace vitrine
