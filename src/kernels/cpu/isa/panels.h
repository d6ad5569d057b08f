// What a format's file in formats/ gives to the kernels of an instruction set.
#pragma once

#include "kernels/cpu/isa/simd.h"
#include "kernels/cpu/panels.h"

namespace vitrine::cpu::VT_ISA {

constexpr int kVecs = kPanel / Vf::kWidth;  // vectors of a panel
constexpr int kTileVecs = 16 / Vf::kWidth;  // vectors of a tile of 16 outputs

// kFp32: decode(panel, k, w) gives kGroup consecutive k of the whole panel, w[kGroup][kVecs].
template <typename Panels>
struct DecodeOf;

// kBytes: quads() gives the levels of one vector of outputs as bytes (levels.h), of which kBias is
// to be taken off; kRun of their products with int8 can be summed in 16 bits; scales() those of one
// of the kGroups of a step, with an offset where kOffsets.
template <typename Panels>
struct BytesOf;
struct Scales {
  Vf scale, offset;
};

}  // namespace vitrine::cpu::VT_ISA
