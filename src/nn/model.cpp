#include "nn/model.h"

namespace vitrine {

Status Model::adopt(WeightLoader& w) {
  w.refuse_unbound();
  VT_RETURN_IF_ERROR(w.status());
  totals_ = w.totals();
  buffers_ = w.take_buffers();
  return Ok{};
}

}  // namespace vitrine
