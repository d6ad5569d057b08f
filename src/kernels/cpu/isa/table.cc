#include "kernels/cpu/isa/functions.h"

namespace vitrine::cpu::VT_ISA {

const KernelTable kTable{matmul_panel, matmul_block, matmul_bytes, quantize_bytes,
                         rms_norm,     layer_norm,   rope,         add,
                         activate,     glu,          softcap,      attention,
                         store_kv,     fma_flops,    byte_ops,     read_all};

}  // namespace vitrine::cpu::VT_ISA
