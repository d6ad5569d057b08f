// What this CPU and this kernel allow. Detected once.
#pragma once

#include <string>

namespace vitrine {

struct CpuFeatures {
  bool avx2 = false;    // with FMA and F16C: the least we need
  bool avx512 = false;  // F, BW, DQ, VL
  bool avx512_vnni = false;
  bool avx512_bf16 = false;
  bool amx = false;  // with AVX512_FP16 and VBMI; Linux has granted the tile state
};

const CpuFeatures& cpu_features();
std::string cpu_model_name();

}  // namespace vitrine
