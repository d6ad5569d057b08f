#include <cmath>
#include <cstring>

#include "kernels/ref/backend.h"

namespace vitrine::ref {
namespace {

float apply(float x, Activation activation) {
  switch (activation) {
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kGelu:
      return 0.5f * x * (1 + std::erf(x * 0.70710678118654752f));
    case Activation::kGeluTanh:
      return 0.5f * x * (1 + std::tanh(0.79788456080286536f * (x + 0.044715f * x * x * x)));
    case Activation::kRelu:
      return x < 0 ? 0 : x;
  }
  return x;
}

}  // namespace

void RefBackend::add_(Tensor out, Tensor a, Tensor b) {
  for (std::int64_t i = 0; i < out.shape.elements(); ++i) out.f32()[i] = a.f32()[i] + b.f32()[i];
}

void RefBackend::activate_(Tensor x, Activation activation) {
  for (std::int64_t i = 0; i < x.shape.elements(); ++i) x.f32()[i] = apply(x.f32()[i], activation);
}

void RefBackend::glu_(Tensor out, Tensor gate, Tensor up, Activation activation) {
  for (std::int64_t i = 0; i < out.shape.elements(); ++i)
    out.f32()[i] = apply(gate.f32()[i], activation) * up.f32()[i];
}

void RefBackend::softcap_(Tensor x, float cap) {
  for (std::int64_t i = 0; i < x.shape.elements(); ++i)
    x.f32()[i] = cap * std::tanh(x.f32()[i] / cap);
}

void RefBackend::gather_rows_(Tensor out, Tensor x, Tensor rows) {
  std::int64_t M = out.dim(0), E = out.dim(1);
  for (std::int64_t i = 0; i < M; ++i)
    std::memcpy(out.f32() + i * E, x.f32() + rows.i32()[i] * E, E * sizeof(float));
}

}  // namespace vitrine::ref
