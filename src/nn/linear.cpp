#include "nn/linear.h"

#include <array>

#include "base/check.h"

namespace vitrine {

void Linear::operator()(Ops& ops, Tensor out, Tensor x) const {
  ops.matmul(out, x, *weight_, bias_);
}

void Linear::add(Ops& ops, Tensor out, Tensor scratch, Tensor x) const {
  ops.matmul_add(out, scratch, x, *weight_, bias_);
}

void Linear::group(Ops& ops, std::initializer_list<Part> parts, Tensor x, const InputNorm& norm) {
  std::array<MatmulPart, 8> products;
  VT_CHECK(parts.size() <= products.size(), "a group of {} products", parts.size());
  std::size_t n = 0;
  for (const Part& p : parts) products[n++] = {p.out, p.linear.weight(), p.linear.bias()};
  ops.matmul_group({products.data(), n}, x, norm);
}

void Linear::glu(Ops& ops, Tensor out, Tensor scratch, Tensor x, const InputNorm& norm,
                 const Linear& gate, const Linear& up, Activation activation) {
  ops.matmul_glu(out, scratch, x, norm, *gate.weight_, gate.bias_, *up.weight_, up.bias_,
                 activation);
}

}  // namespace vitrine
