#include "kernels/kv_cache.h"

#include "quant/format.h"

namespace vitrine {
namespace {

std::string describe(const KvPart& part) {
  const Format* format = find_format(part.type);
  return fmt::format(
      "{} values of type {}", part.width,
      format != nullptr ? format->info.name : std::to_string(static_cast<int>(part.type)));
}

}  // namespace

std::int64_t kv_row_bytes(const KvPart& part) {
  const Format* format = find_format(part.type);
  VT_CHECK(format != nullptr && part.width % format->info.block == 0, "a KV row of {}",
           describe(part));
  return format_bytes(format->info, part.width);
}

std::int64_t plain_page_bytes(const KvShape& s) {
  return static_cast<std::int64_t>(s.layout.heads) * s.page_size *
         (kv_row_bytes(s.layout.k) + kv_row_bytes(s.layout.v));
}

Status check_kv_formats(const KvLayout& layout) {
  for (const KvPart* part : {&layout.k, &layout.v}) {
    const Format* format = find_format(part->type);
    if (format == nullptr || part->width < 1 || part->width % format->info.block != 0)
      return make_error(ErrorCode::kUnsupported,
                        "KV cache: {} of a head has {}; the type must be a format of weights, the "
                        "width a multiple of its block{}",
                        part == &layout.k ? "K" : "V", describe(*part),
                        format != nullptr ? fmt::format(" of {}", format->info.block) : "");
  }
  return Ok{};
}

Status check_uniform_kv(std::string_view backend, const KvLayout& layout, int max_width) {
  const KvPart& k = layout.k;
  const bool plain = k.type == DType::kF32 || k.type == DType::kF16 || k.type == DType::kBF16;
  if (plain && k == layout.v && k.width <= max_width) return Ok{};
  return make_error(ErrorCode::kUnsupported,
                    "KV cache: K of a head has {}, V {}; {} stores K and V of one width up to {} "
                    "and of one type: f32, f16 or bf16",
                    describe(k), describe(layout.v), backend, max_width);
}

}  // namespace vitrine
