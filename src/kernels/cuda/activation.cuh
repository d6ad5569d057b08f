// Activations, as ref has them.
#pragma once

#include "kernels/backend.h"

namespace vitrine::cuda {

__device__ inline float apply_activation(float x, Activation activation) {
  switch (activation) {
    case Activation::kSilu:
      return x / (1 + expf(-x));
    case Activation::kGelu:
      return 0.5f * x * (1 + erff(x * 0.70710678118654752f));
    case Activation::kGeluTanh:
      return 0.5f * x * (1 + tanhf(0.79788456080286536f * (x + 0.044715f * x * x * x)));
    case Activation::kRelu:
      return x < 0 ? 0 : x;
  }
  return x;
}

}  // namespace vitrine::cuda
