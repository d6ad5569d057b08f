#include "kernels/ref/backend.h"

#include <cstring>

#include "kernels/host_memory.h"

namespace vitrine {
namespace ref {

Result<Buffer> RefBackend::allocate(std::int64_t bytes) { return allocate_host(bytes); }

void RefBackend::write(void* to, const void* from, std::int64_t bytes) {
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

Result<std::unique_ptr<Weight>> RefBackend::pack(const MatrixSource& source, WeightUse) {
  return std::unique_ptr<Weight>(std::make_unique<RowWeight>(source));
}

}  // namespace ref

extern const BackendDef kBackend_ref;
const BackendDef kBackend_ref{
    "ref", 0, [](const BackendOptions& options) -> Result<std::unique_ptr<Backend>> {
      VT_RETURN_IF_ERROR(check_device("ref", options, 1));
      return std::unique_ptr<Backend>(std::make_unique<ref::RefBackend>());
    }};

}  // namespace vitrine
