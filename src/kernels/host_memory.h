// Host memory for the backends that compute on the CPU.
#pragma once

#include "kernels/device.h"

namespace vitrine {

// Zeroed, 64-byte aligned, large pages where the system gives them.
Result<Buffer> allocate_host(std::int64_t bytes);
// Bytes that can be had without swapping, if the system says.
std::optional<std::int64_t> free_host_memory();

}  // namespace vitrine
