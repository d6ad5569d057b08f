// Host memory for the backends that compute on the CPU.
#pragma once

#include "kernels/backend.h"

namespace vitrine {

// Zeroed, 64-byte aligned, large pages where the system gives them.
Result<Buffer> allocate_host(std::int64_t bytes);

}  // namespace vitrine
