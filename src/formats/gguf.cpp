#include "formats/gguf.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>

#include "formats/detail.h"
#include "formats/storage.h"

namespace vitrine {
namespace {

using detail::quote_name;

constexpr std::uint32_t kAlignmentDefault = 32, kAlignmentMin = 8, kAlignmentMax = 65536;

enum ValueType : std::uint32_t { kU32Value = 4, kStringValue = 8, kArrayValue = 9 };

struct Scalar {
  MetaType type;
  int width;
};

std::optional<Scalar> scalar_of(std::uint32_t type) {
  switch (type) {
    case 0:
      return Scalar{MetaType::kUint, 1};
    case 1:
      return Scalar{MetaType::kInt, 1};
    case 2:
      return Scalar{MetaType::kUint, 2};
    case 3:
      return Scalar{MetaType::kInt, 2};
    case kU32Value:
      return Scalar{MetaType::kUint, 4};
    case 5:
      return Scalar{MetaType::kInt, 4};
    case 6:
      return Scalar{MetaType::kFloat, 4};
    case 7:
      return Scalar{MetaType::kBool, 1};
    case 10:
      return Scalar{MetaType::kUint, 8};
    case 11:
      return Scalar{MetaType::kInt, 8};
    case 12:
      return Scalar{MetaType::kFloat, 8};
    default:
      return std::nullopt;
  }
}

class GgufParser {
 public:
  GgufParser(std::span<const std::byte> bytes, const std::string& name)
      : bytes_(bytes), reader_(bytes), name_(name) {}

  Result<GgufImage> parse() {
    VT_RETURN_IF_ERROR(header());
    for (std::uint64_t i = 0; i < keys_; ++i) VT_RETURN_IF_ERROR(key_value(i));
    image_.tensors.reserve(static_cast<std::size_t>(tensors_));
    offsets_.reserve(static_cast<std::size_t>(tensors_));
    for (std::uint64_t i = 0; i < tensors_; ++i) VT_RETURN_IF_ERROR(tensor_info(i));
    VT_RETURN_IF_ERROR(place_tensors());
    VT_RETURN_IF_ERROR(check_overlaps());
    return std::move(image_);
  }

 private:
  template <typename... Args>
  Error fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) const {
    return {code, name_ + ": " + fmt::format(format, std::forward<Args>(args)...)};
  }
  template <typename... Args>
  Error malformed(fmt::format_string<Args...> format, Args&&... args) const {
    return fail(ErrorCode::kMalformed, format, std::forward<Args>(args)...);
  }
  Error truncated(std::string_view what) const {
    return malformed("the file of {} bytes ends inside {}", bytes_.size(), what);
  }

  Status header() {
    char magic[4] = {};
    std::uint32_t version = 0;
    if (!reader_.read(magic)) return truncated("the GGUF header");
    if (std::string_view(magic, 4) != "GGUF") return malformed("not a GGUF file: bad magic");
    if (!reader_.read(version) || !reader_.read(tensors_) || !reader_.read(keys_))
      return truncated("the GGUF header");
    if (version == 0x02000000 || version == 0x03000000)
      return fail(ErrorCode::kUnsupported, "GGUF in big-endian order; only little-endian is read");
    if (version != 2 && version != 3)
      return fail(ErrorCode::kUnsupported, "GGUF version {}; versions 2 and 3 are read", version);
    // The smallest key takes 14 bytes and the smallest tensor info 33, so that a count which the
    // file cannot hold is refused before anything is reserved for it.
    if (tensors_ > reader_.remaining() / 33)
      return malformed("{} tensors do not fit in {} bytes", tensors_, bytes_.size());
    if (keys_ > reader_.remaining() / 14)
      return malformed("{} metadata keys do not fit in {} bytes", keys_, bytes_.size());
    if (tensors_ > detail::kMaxTensors)
      return fail(ErrorCode::kTooLarge, "{} tensors, at most {}", tensors_, detail::kMaxTensors);
    if (keys_ > detail::kMaxKeys)
      return fail(ErrorCode::kTooLarge, "{} metadata keys, at most {}", keys_, detail::kMaxKeys);
    return Ok{};
  }

  Status key_value(std::uint64_t number) {
    std::string_view key;
    std::uint32_t type = 0;
    if (!reader_.read_string(key)) return truncated(fmt::format("metadata key {}", number));
    if (key.size() > detail::kMaxKeyBytes)
      return fail(ErrorCode::kTooLarge, "metadata key {} has {} bytes, at most {}", quote_name(key),
                  key.size(), detail::kMaxKeyBytes);
    if (!detail::printable(key))
      return malformed("metadata key {} {} is empty or not printable UTF-8", number,
                       quote_name(key));
    if (!reader_.read(type)) return truncated("metadata key " + quote_name(key));
    if (key == "general.alignment" && type != kU32Value)
      return malformed("metadata key 'general.alignment' has value type {}, wanted {} (uint32)",
                       type, static_cast<unsigned>(kU32Value));
    VT_TRY(MetaValue value, read_value(key, type));
    if (key == "general.alignment") VT_RETURN_IF_ERROR(set_alignment(value));
    if (!image_.meta.add(std::string(key), std::move(value)))
      return malformed("metadata key {} appears twice", quote_name(key));
    return Ok{};
  }

  Status set_alignment(const MetaValue& value) {
    auto alignment = std::get<std::uint64_t>(value);
    if (!std::has_single_bit(alignment) || alignment < kAlignmentMin || alignment > kAlignmentMax)
      return malformed(
          "metadata key 'general.alignment' is {}, wanted a power of two from {} to {}", alignment,
          kAlignmentMin, kAlignmentMax);
    alignment_ = alignment;
    return Ok{};
  }

  Result<MetaValue> read_value(std::string_view key, std::uint32_t type) {
    if (type == kArrayValue) return read_array(key);
    if (type == kStringValue) {
      std::string_view text;
      if (!reader_.read_string(text)) return truncated("metadata key " + quote_name(key));
      return MetaValue(text);
    }
    auto scalar = scalar_of(type);
    if (!scalar)
      return malformed("metadata key {} has the unknown value type {}", quote_name(key), type);
    const std::byte* at = reader_.here();
    if (!reader_.skip(static_cast<std::uint64_t>(scalar->width)))
      return truncated("metadata key " + quote_name(key));
    return read_scalar(key, *scalar, at);
  }

  Result<MetaValue> read_scalar(std::string_view key, Scalar scalar, const std::byte* at) const {
    auto load = [at](auto value) {
      std::memcpy(&value, at, sizeof(value));
      return value;
    };
    auto integer = [&](auto u8, auto u16, auto u32, auto u64) {
      return scalar.width == 1   ? decltype(u64){load(u8)}
             : scalar.width == 2 ? decltype(u64){load(u16)}
             : scalar.width == 4 ? decltype(u64){load(u32)}
                                 : load(u64);
    };
    switch (scalar.type) {
      case MetaType::kUint:
        return MetaValue(
            integer(std::uint8_t{}, std::uint16_t{}, std::uint32_t{}, std::uint64_t{}));
      case MetaType::kInt:
        return MetaValue(integer(std::int8_t{}, std::int16_t{}, std::int32_t{}, std::int64_t{}));
      case MetaType::kFloat:
        return MetaValue(scalar.width == 4 ? double{load(float{})} : load(double{}));
      default:
        break;
    }
    auto byte = load(std::uint8_t{});
    if (byte > 1)
      return malformed("metadata key {} is bool {}, wanted 0 or 1", quote_name(key), byte);
    return MetaValue(byte == 1);
  }

  Result<MetaValue> read_array(std::string_view key) {
    std::uint32_t type = 0;
    std::uint64_t count = 0;
    if (!reader_.read(type) || !reader_.read(count))
      return truncated("metadata key " + quote_name(key));
    if (type == kArrayValue)
      return fail(ErrorCode::kUnsupported, "metadata key {} is an array of arrays",
                  quote_name(key));
    auto scalar = scalar_of(type);
    if (!scalar && type != kStringValue)
      return malformed("metadata key {} is an array of the unknown value type {}", quote_name(key),
                       type);
    auto smallest = static_cast<std::uint64_t>(scalar ? scalar->width : 8);
    if (count > reader_.remaining() / smallest)
      return malformed("metadata key {}: an array of {} elements passes the end of the file",
                       quote_name(key), count);
    if (count > detail::kMaxArray)
      return fail(ErrorCode::kTooLarge, "metadata key {}: an array of {} elements, at most {}",
                  quote_name(key), count, detail::kMaxArray);
    MetaArray array;
    array.count = static_cast<std::size_t>(count);
    array.data = reader_.here();
    array.type = scalar ? scalar->type : MetaType::kString;
    array.width = scalar ? scalar->width : 0;
    if (scalar) {
      array.bytes = static_cast<std::size_t>(count * smallest);
      if (!reader_.skip(array.bytes)) return truncated("metadata key " + quote_name(key));
      return MetaValue(std::move(array));
    }
    std::string_view text;
    for (std::uint64_t i = 0; i < count; ++i)
      if (!reader_.read_string(text))
        return malformed("metadata key {}: string {} of {} passes the end of the file",
                         quote_name(key), i, count);
    array.bytes = static_cast<std::size_t>(reader_.here() - array.data);
    return MetaValue(std::move(array));
  }

  Status tensor_info(std::uint64_t number) {
    std::string_view name;
    std::uint32_t rank = 0, type = 0;
    if (!reader_.read_string(name)) return truncated(fmt::format("the info of tensor {}", number));
    if (name.size() > detail::kMaxNameBytes)
      return fail(ErrorCode::kTooLarge, "the name of tensor {} {} has {} bytes, at most {}", number,
                  quote_name(name), name.size(), detail::kMaxNameBytes);
    if (!detail::printable(name))
      return malformed("the name of tensor {} {} is empty or not printable UTF-8", number,
                       quote_name(name));
    if (!reader_.read(rank)) return truncated("the info of tensor " + quote_name(name));
    if (rank < 1 || rank > Shape::kMaxRank)
      return malformed("tensor {} has {} dimensions, wanted 1 to {}", quote_name(name), rank,
                       Shape::kMaxRank);
    std::uint64_t dims[Shape::kMaxRank] = {}, offset = 0;
    for (std::uint32_t i = 0; i < rank; ++i)
      if (!reader_.read(dims[i])) return truncated("the info of tensor " + quote_name(name));
    if (!reader_.read(type) || !reader_.read(offset))
      return truncated("the info of tensor " + quote_name(name));
    TensorInfo info;
    info.name = name;
    VT_TRY(std::uint64_t size, tensor_bytes(info, {dims, rank}, type));
    // The place is known once the data section's start is; until then only the size counts.
    info.data = {static_cast<const std::byte*>(nullptr), 0};
    image_.tensors.push_back(std::move(info));
    offsets_.push_back({offset, size});
    return Ok{};
  }

  Result<std::uint64_t> tensor_bytes(TensorInfo& info, std::span<const std::uint64_t> dims,
                                     std::uint32_t number) const {
    std::int64_t elements = 1;
    for (std::uint64_t dim : dims) {
      if (dim == 0) return malformed("tensor {} has a dimension of 0", quote_name(info.name));
      if (dim > std::uint64_t{std::numeric_limits<std::int64_t>::max()} ||
          __builtin_mul_overflow(elements, static_cast<std::int64_t>(dim), &elements))
        return malformed("tensor {}: the product of the dimensions {} passes 2^63",
                         quote_name(info.name), fmt::join(dims, " x "));
    }
    for (auto dim = dims.rbegin(); dim != dims.rend(); ++dim)
      info.shape.push_back(static_cast<std::int64_t>(*dim));
    const StorageType* type = find_ggml_type(number);
    if (type == nullptr)
      return fail(ErrorCode::kUnsupported, "tensor {} has the unknown type {}",
                  quote_name(info.name), number);
    info.dtype = type->dtype;
    if (dims[0] % static_cast<std::uint64_t>(type->block) != 0)
      return malformed("tensor {}: rows of {} are not a multiple of {}'s block of {}",
                       quote_name(info.name), dims[0], type->name, type->block);
    std::int64_t size = 0;
    if (__builtin_mul_overflow(elements / type->block, std::int64_t{type->bytes}, &size))
      return malformed("tensor {}: its size as {} passes 2^63 bytes", quote_name(info.name),
                       type->name);
    return static_cast<std::uint64_t>(size);
  }

  Status place_tensors() {
    std::size_t padding = (alignment_ - reader_.position() % alignment_) % alignment_;
    for (std::size_t i = 0; i < image_.tensors.size(); ++i) {
      TensorInfo& info = image_.tensors[i];
      auto [offset, size] = offsets_[i];
      if (offset % alignment_ != 0)
        return malformed("tensor {}: offset {} is not a multiple of the alignment {}",
                         quote_name(info.name), offset, alignment_);
      std::size_t room = reader_.remaining() < padding ? 0 : reader_.remaining() - padding;
      if (offset > room || size > room - offset)
        return malformed("tensor {}: bytes {} + {} pass the data section's {} bytes",
                         quote_name(info.name), offset, size, room);
      info.data = {reader_.here() + padding + offset, static_cast<std::size_t>(size)};
    }
    return Ok{};
  }

  // Every tensor has bytes, so sorting by offset puts overlapping ones next to each other.
  Status check_overlaps() const {
    std::vector<std::uint32_t> order(offsets_.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [this](std::uint32_t a, std::uint32_t b) {
      return offsets_[a].offset < offsets_[b].offset;
    });
    for (std::size_t i = 1; i < order.size(); ++i) {
      const Extent& before = offsets_[order[i - 1]];
      if (before.offset + before.size > offsets_[order[i]].offset)
        return malformed("tensors {} and {} overlap", quote_name(image_.tensors[order[i - 1]].name),
                         quote_name(image_.tensors[order[i]].name));
    }
    return Ok{};
  }

  struct Extent {
    std::uint64_t offset, size;
  };

  std::span<const std::byte> bytes_;
  detail::ByteReader reader_;
  const std::string& name_;
  std::uint64_t tensors_ = 0, keys_ = 0, alignment_ = kAlignmentDefault;
  std::vector<Extent> offsets_;  // as in the file, of image_.tensors
  GgufImage image_;
};

}  // namespace

Result<GgufImage> parse_gguf(std::span<const std::byte> bytes, const std::string& name) {
  return GgufParser(bytes, name).parse();
}

}  // namespace vitrine
