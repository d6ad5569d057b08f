// Model: an architecture with its weights on a backend. One file of this folder per architecture,
// in four parts: configuration, weights, forward, descriptor. Model files may repeat each other;
// what they share without knowing it is in nn/.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/model_file.h"
#include "kernels/backend.h"
#include "kv/cache_spec.h"
#include "nn/config_reader.h"
#include "nn/decoder_config.h"
#include "nn/layers.h"
#include "nn/weight_loader.h"

namespace vitrine {

struct ModelInfo {
  std::string arch;
  int layers = 0, dim = 0, heads = 0, vocab = 0;
  int context = 0;  // positions the model was made for
};

ModelInfo model_info(std::string arch, const DecoderConfig& c);

struct ModelOptions {
  int max_tokens = 512;  // T of the largest step
  int context = 0;       // positions the engine will serve; 0: all that the model was made for
  std::function<void(std::int64_t bytes)> progress;
};

class Model {
 public:
  virtual ~Model() = default;
  const ModelInfo& info() const { return info_; }
  const WeightLoader::Totals& totals() const { return totals_; }

  virtual CacheSpec cache_spec(int layer) const = 0;
  // hidden (M,E): the final, normed hidden states of rows in.out_rows. K and V of all rows are
  // stored.
  virtual void forward(const ModelInput& in, Tensor hidden) = 0;
  // logits (M,V) of hidden (M,E).
  virtual void head(Tensor logits, Tensor hidden) = 0;

 protected:
  Model(ModelInfo info, Backend& backend) : info_(std::move(info)), b_(backend) {}
  // Takes over what the loader made; its error, if any. Last line of every load().
  Status adopt(WeightLoader& w);

  ModelInfo info_;
  Backend& b_;

 private:
  WeightLoader::Totals totals_;
  std::vector<Buffer> buffers_;
};

struct Arch {
  const char* name;
  std::vector<std::string> gguf;  // general.architecture
  std::vector<std::string> hf;    // architectures[0]
  Result<std::unique_ptr<Model>> (*load)(const ModelFile& file, Backend& backend,
                                         const ModelOptions& options);
};
std::span<const Arch* const> all_archs();

// The error lists the known ones.
Result<const Arch*> find_arch(const ModelFile& file);
Result<std::unique_ptr<Model>> load_model(const ModelFile& file, Backend& backend,
                                          const ModelOptions& options);

}  // namespace vitrine
