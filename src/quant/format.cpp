#include "quant/format.h"

#include <cstring>

#include "formats.gen.h"

namespace vitrine {
namespace {

template <typename F>
void decode_blocks(const std::byte* data, std::int64_t blocks, float* out) {
  static_assert(sizeof(typename F::Block) == F::kInfo.bytes && F::kInfo.block <= kMaxBlock);
  typename F::Block block;
  for (std::int64_t i = 0; i < blocks; ++i) {
    std::memcpy(&block, data + i * F::kInfo.bytes, sizeof(block));
    F::decode(block, out + i * F::kInfo.block);
  }
}

template <typename F>
void encode_blocks(const float* x, std::int64_t blocks, std::byte* data) {
  typename F::Block block;
  for (std::int64_t i = 0; i < blocks; ++i) {
    F::encode(x + i * F::kInfo.block, block);
    std::memcpy(data + i * F::kInfo.bytes, &block, sizeof(block));
  }
}

template <typename... F>
std::span<const Format> make_table(FormatList<F...>) {
  static const Format kTable[] = {{F::kInfo, decode_blocks<F>, encode_blocks<F>}...};
  return kTable;
}

}  // namespace

std::span<const Format> all_formats() { return make_table(AllFormats{}); }

const Format* find_format(DType dtype) {
  for (const Format& f : all_formats())
    if (f.info.dtype == dtype) return &f;
  return nullptr;
}

const Format* find_format(std::string_view name) {
  for (const Format& f : all_formats())
    if (name == f.info.name) return &f;
  return nullptr;
}

}  // namespace vitrine
