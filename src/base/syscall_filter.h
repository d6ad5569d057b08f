// The list of system calls of base/sandbox.h.
#pragma once

#include "base/result.h"

namespace vitrine {

// For all threads. `open_files`: files may be opened for reading. The calling thread must have given
// up new privileges.
Status install_syscall_filter(bool open_files);

}  // namespace vitrine
