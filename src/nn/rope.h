// Rotary position embedding: frequencies and their scalings.
#pragma once

#include <string>
#include <vector>

#include "nn/config_reader.h"
#include "nn/weight_loader.h"

namespace vitrine {

// How a configuration stretches the frequencies. Formulas as in HF's modeling_rope_utils.
struct RopeConfig {
  int dims = 0;  // R: rotated dims of each head
  float base = 10000;
  std::string type = "default";  // default, linear, llama3, yarn, longrope
  float factor = 1;
  int context = 0, original_context = 0;  // positions of the model, and before it was stretched
  float low_freq_factor = 1, high_freq_factor = 4;  // llama3
  float beta_fast = 32, beta_slow = 1;              // yarn
  bool truncate = true;                             // yarn: whole-numbered borders
  float attention_factor = 0;                       // yarn, longrope; 0: the formula's default
  float mscale = 0, mscale_all_dim = 0;             // yarn
  std::vector<float> short_factors = {}, long_factors = {};  // longrope
};

// Reads the settings in GGUF keys, in the older HF spelling (rope_theta, rope_scaling) and in the
// newer (rope_parameters, or rope_parameters.<layer_type> when `layer_type` is given). For models
// whose layers differ: "full_attention" or "sliding_attention", which has a base of its own and, in
// GGUF and older HF files, no scaling.
RopeConfig read_rope(ConfigReader& config, int head_dim, int context,
                     std::string_view layer_type = {}, float default_base = 10000);

// 1 / wavelength of each pair, and what cos and sin are multiplied with.
struct RopeFrequencies {
  std::vector<float> inv_freq;  // (R/2)
  float scale = 1;
};
// `context`: positions the engine will serve, 0 for all of the model's; decides between longrope's
// short and long factors.
RopeFrequencies rope_frequencies(const RopeConfig& config, int context);

// Frequencies on the device, and the step's table. Without a configuration: no rotation.
class Rope {
 public:
  Rope() = default;
  // Includes what GGUF files keep as tensors: llama3's and longrope's factors.
  Rope(WeightLoader& w, RopeConfig config, int context, int max_tokens);
  // (T,R/2,2), valid until the next call; undefined without rotation.
  Tensor operator()(Ops& ops, Tensor positions) const;

 private:
  Tensor inv_freq_, table_;
  float scale_ = 1;
};

}  // namespace vitrine
