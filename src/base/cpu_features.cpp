#include "base/cpu_features.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

namespace vitrine {
namespace {

std::uint64_t xgetbv0() {
  std::uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<std::uint64_t>(high) << 32) | low;
}

// Linux hands out the 8 KiB tile state only to processes that ask for it.
bool request_amx() {
  constexpr long kArchReqXcompPerm = 0x1023, kXtileData = 18;
  return syscall(SYS_arch_prctl, kArchReqXcompPerm, kXtileData) == 0;
}

CpuFeatures detect() {
  CpuFeatures f;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return f;
  bool osxsave = c & (1u << 27), fma = c & (1u << 12), f16c = c & (1u << 29);
  if (!osxsave) return f;
  std::uint64_t xcr0 = xgetbv0();
  unsigned b7 = 0, c7 = 0, d7 = 0, a71 = 0;
  if (!__get_cpuid_count(7, 0, &a, &b7, &c7, &d7)) return f;
  unsigned max_sub = a;
  if (max_sub >= 1) __get_cpuid_count(7, 1, &a71, &b, &c, &d);
  f.avx2 = (xcr0 & 6) == 6 && (b7 & (1u << 5)) && fma && f16c;
  bool zmm = (xcr0 & 0xE6) == 0xE6;
  f.avx512 = f.avx2 && zmm && (b7 & (1u << 16)) && (b7 & (1u << 17)) && (b7 & (1u << 30)) &&
             (b7 & (1u << 31));
  f.avx512_vnni = f.avx512 && (c7 & (1u << 11));
  f.avx512_bf16 = f.avx512 && (a71 & (1u << 5));
  bool tiles = (xcr0 & (3ull << 17)) == (3ull << 17);
  // AMX tiles with int8 and bf16 products, and the AVX-512 extensions (FP16, VBMI) that unpack
  // weights into tiles.
  constexpr unsigned kAmx = (1u << 24) | (1u << 25) | (1u << 22) | (1u << 23), kVbmi = 1u << 1;
  f.amx = f.avx512_bf16 && f.avx512_vnni && tiles && (c7 & kVbmi) && (d7 & kAmx) == kAmx &&
          request_amx();
  return f;
}

}  // namespace

const CpuFeatures& cpu_features() {
  static const CpuFeatures kFeatures = detect();
  return kFeatures;
}

std::string cpu_model_name() {
  unsigned regs[12] = {};
  for (unsigned i = 0; i < 3; ++i)
    if (!__get_cpuid(0x80000002 + i, &regs[4 * i], &regs[4 * i + 1], &regs[4 * i + 2],
                     &regs[4 * i + 3]))
      return "unknown CPU";
  char text[49] = {};
  std::memcpy(text, regs, 48);
  std::string name = text;
  auto first = name.find_first_not_of(' ');
  return first == std::string::npos ? "unknown CPU" : name.substr(first);
}

}  // namespace vitrine
