// Linear: a matrix with its bias, and every product that layers need of it. This is the one place
// that knows how a matrix is multiplied: an adapter is added here, a matrix that is split over
// several devices by outputs is put together here. Layers never see the weight.
#pragma once

#include <initializer_list>
#include <memory>
#include <utility>

#include "kernels/ops.h"

namespace vitrine {

class Linear {
 public:
  Linear() = default;
  Linear(std::unique_ptr<Weight> weight, Tensor bias) : weight_(std::move(weight)), bias_(bias) {}

  // out = x * w^T + bias.                      out (T,N), x (T,K)
  void operator()(Ops& ops, Tensor out, Tensor x) const;
  // out += x * w^T + bias.                     out, scratch (T,N), x (T,K)
  void add(Ops& ops, Tensor out, Tensor scratch, Tensor x) const;
  // Products that share their input, normed first where `norm` is defined: q, k and v.
  struct Part {
    Tensor out;  // (T,N)
    const Linear& linear;
  };
  static void group(Ops& ops, std::initializer_list<Part> parts, Tensor x, const InputNorm& norm);
  // out = activation(gate(x)) * up(x), with x normed as in group().  out, scratch (T,F)
  static void glu(Ops& ops, Tensor out, Tensor scratch, Tensor x, const InputNorm& norm,
                  const Linear& gate, const Linear& up, Activation activation);

  // For whoever binds and checks matrices. Null: nothing was bound.
  const Weight* weight() const { return weight_.get(); }
  const Tensor& bias() const { return bias_; }  // (N) or undefined

 private:
  std::unique_ptr<Weight> weight_;  // (N,K)
  Tensor bias_;
};

}  // namespace vitrine
