// LayerLoader: binds one decoder layer. Tensors are named by stems: "attn_q" stands for
// "blk.3.attn_q.weight" and, where the file has it, "blk.3.attn_q.bias".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nn/decoder_config.h"
#include "nn/layers.h"
#include "nn/weight_loader.h"

namespace vitrine {

struct LayerLoader {
  WeightLoader& w;
  const DecoderConfig& c;
  int layer;

  Name weight(std::string_view gguf, std::string_view hf) const;
  Name bias(std::string_view gguf, std::string_view hf) const;

  Linear linear(std::string_view gguf, std::string_view hf, int rows, int cols,
                bool transposed = false);
  Norm norm(std::string_view gguf, std::string_view hf, int n);
  Norm norm(std::string_view gguf, std::string_view hf) { return norm(gguf, hf, c.dim); }

  // q, k, v and the output projection under their usual names, apart or fused.
  Attention attention(std::string_view hf_out = "self_attn.o_proj");
  // The same with rows of q, k, v below each other in one matrix. `bias` may be empty.
  Attention attention(const MatrixSource& qkv, const std::vector<float>& bias, Linear out);
  GatedFfn gated_ffn();
  // The same with the rows of gate above those of up in one matrix.
  GatedFfn fused_gated_ffn();
  Mlp mlp(std::string_view hf_up, std::string_view hf_down, bool transposed = false);

 private:
  Linear rotary(MatrixSource m, std::vector<float> bias, int heads);
  Attention empty_attention() const;
};

}  // namespace vitrine
