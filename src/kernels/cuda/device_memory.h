// Memory of the device, and host memory that the device reaches.
#pragma once

#include "kernels/device.h"

namespace vitrine::cuda {

// Zeroed, aligned to 256 bytes. The error says what was asked for and what is free.
Result<Buffer> allocate_device(std::int64_t bytes);
// Pinned: the device reads and writes it at the same address. Zeroed.
Result<Buffer> allocate_pinned(std::int64_t bytes);

}  // namespace vitrine::cuda
