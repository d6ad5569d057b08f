// Model: an architecture with its weights on a device. Which architectures there are: models/.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/device.h"
#include "kernels/ops.h"
#include "kv/cache_spec.h"
#include "nn/layers.h"
#include "nn/weight_loader.h"

namespace vitrine {

struct ModelInfo {
  std::string arch;
  int layers = 0, dim = 0, heads = 0, vocab = 0;
  int context = 0;  // positions the model was made for
};

struct ModelOptions {
  int max_tokens = 512;  // T of the largest step
  int context = 0;       // positions the engine will serve; 0: all that the model was made for
  std::function<void(std::int64_t bytes)> progress;
};

// Owns its weights and its activations, which are memory of the device that it was loaded onto: the
// device must outlive it, and the ops it is given must be that device's. Engine thread only, apart
// from info(), totals() and cache_spec().
class Model {
 public:
  virtual ~Model() = default;
  const ModelInfo& info() const { return info_; }
  const WeightLoader::Totals& totals() const { return totals_; }

  virtual CacheSpec cache_spec(int layer) const = 0;
  // hidden (M,E): the final, normed hidden states of rows in.out_rows, at most max_tokens rows in.
  // K and V of all rows are stored.
  virtual void forward(Ops& ops, const ModelInput& in, Tensor hidden) = 0;
  // logits (M,V) of hidden (M,E).
  virtual void head(Ops& ops, Tensor logits, Tensor hidden) = 0;

 protected:
  explicit Model(ModelInfo info) : info_(std::move(info)) {}
  // Takes over what the loader made; its error, if any. The last step of loading.
  Status adopt(WeightLoader& w);

  ModelInfo info_;

 private:
  WeightLoader::Totals totals_;
  std::vector<Buffer> buffers_;
};

}  // namespace vitrine
