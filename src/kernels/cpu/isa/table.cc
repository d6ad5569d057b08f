#include "kernels/cpu/isa/functions.h"

#define VT_STRING_(x) #x
#define VT_STRING(x) VT_STRING_(x)

namespace vitrine::cpu::VT_ISA {

const KernelTable kTable{VT_STRING(VT_ISA),
                         matmul_panel,
                         matmul_block,
                         matmul_bytes,
                         quantize_bytes,
                         rms_norm,
                         layer_norm,
                         rope,
                         add,
                         activate,
                         glu,
                         softcap,
                         attention,
                         store_kv,
                         fma_flops,
                         byte_ops,
                         read_all};

}  // namespace vitrine::cpu::VT_ISA
