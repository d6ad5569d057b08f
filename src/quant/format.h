// What the rest of the engine may ask about an element format without knowing any by name.
//
// A format is one header in this folder: a struct with `kInfo`, `Block`, `decode` and `encode`.
// CMake lists the headers into formats.gen.h; adding or removing a header is the whole
// registration. Every backend then takes it, by decoding its rows. An optional file per backend,
// kernels/<backend>/formats/<name>, makes it fast there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "tensor/ggml_types.h"

namespace vitrine {

// Weights of a block, at most: what backends have room for when they decode.
inline constexpr int kMaxBlock = 256;

struct FormatInfo {
  const char* name;  // as users write it: "bf16"
  DType dtype;
  int block;       // weights per block
  int bytes;       // bytes per block
  bool quantized;  // true when decode is not the identity on stored numbers
};

// One of ggml's types.
constexpr FormatInfo ggml_info(std::string_view name, bool quantized) {
  const StorageType& type = ggml_type(name);
  return {type.name, type.dtype, type.block, type.bytes, quantized};
}

struct Format {
  FormatInfo info;
  // `blocks` consecutive blocks at `data` (no alignment needed) to blocks * info.block floats.
  void (*decode)(const std::byte* data, std::int64_t blocks, float* out);
  void (*encode)(const float* x, std::int64_t blocks, std::byte* data);
};

// Of templates over formats: formats.gen.h, and such lists of the backends.
template <typename... F>
struct FormatList {};

std::span<const Format> all_formats();
const Format* find_format(DType dtype);  // null when no format has that number
const Format* find_format(std::string_view name);

// Bytes of `elements` weights (a multiple of the block).
inline std::int64_t format_bytes(const FormatInfo& f, std::int64_t elements) {
  return elements / f.block * f.bytes;
}

}  // namespace vitrine
