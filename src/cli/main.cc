// Entry point. Compiled for plain x86-64, so that an old CPU gets a message, not an illegal
// instruction.
#include <cstdio>

namespace vitrine {
int run_cli(int argc, char** argv);
}

int main(int argc, char** argv) {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    std::fputs("error: this program needs a CPU with AVX2 and FMA (x86-64-v3)\n", stderr);
    return 1;
  }
  return vitrine::run_cli(argc, argv);
}
