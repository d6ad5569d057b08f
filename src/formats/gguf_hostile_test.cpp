// Hostile files. Each is a valid file with one thing changed.
#include <gtest/gtest.h>

#include "formats/test_files.h"

namespace vitrine {
namespace {

using test::Bytes;
using test::GgufBuilder;
using test::number_bytes;
using test::small_gguf;

constexpr std::uint64_t kHuge = std::uint64_t{1} << 63;

auto open(const Bytes& bytes) { return ModelFile::open_gguf(bytes, "m.gguf"); }

template <typename... Parts>
void refuse(GgufBuilder b, Parts... parts) {
  Bytes bytes = b.build();
  VT_EXPECT_REFUSED(open(bytes), ErrorCode::kMalformed, parts...);
}

GgufBuilder with_tensor(std::vector<std::uint64_t> dims, std::uint32_t type, std::size_t bytes) {
  GgufBuilder b = small_gguf();
  b.tensor("bad", std::move(dims), type, bytes);
  return b;
}

TEST(GgufHostile, TruncationAtEveryByte) {
  GgufBuilder b = small_gguf();
  Bytes bytes = b.build();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    Bytes cut = test::prefix_of(bytes, size);
    VT_EXPECT_REFUSED(open(cut), ErrorCode::kMalformed, "m.gguf");
    if (size >= b.metadata_size())
      VT_EXPECT_REFUSED(open(cut), ErrorCode::kMalformed,
                        size < bytes.size() - 68 - 8 ? "'a'" : "'b'");
  }
}

TEST(GgufHostile, MagicAndVersion) {
  GgufBuilder b = small_gguf();
  b.magic = "GGUE";
  refuse(b, "magic");
  b.magic = "GGUF";
  for (std::uint32_t version : {0u, 1u, 4u, 0x7FFFFFFFu}) {
    b.version = version;
    Bytes bytes = b.build();
    VT_EXPECT_REFUSED(open(bytes), ErrorCode::kUnsupported, std::to_string(version));
  }
  for (std::uint32_t version : {0x02000000u, 0x03000000u}) {
    b.version = version;
    Bytes bytes = b.build();
    VT_EXPECT_REFUSED(open(bytes), ErrorCode::kUnsupported, "big-endian");
  }
}

TEST(GgufHostile, Counts) {
  for (std::uint64_t count :
       {kHuge, ~std::uint64_t{0}, ~std::uint64_t{0} / 33, std::uint64_t{1} << 32}) {
    GgufBuilder b = small_gguf();
    b.tensor_count = count;
    refuse(b, std::to_string(count), "tensors");
    b = small_gguf();
    b.key_count = count;
    refuse(b, std::to_string(count), "keys");
  }
  // Off by one either way: what follows is read as something it is not.
  for (int change : {-1, 1}) {
    GgufBuilder b = small_gguf();
    b.key_count = b.keys.size() + change;
    EXPECT_FALSE(open(b.build()).ok());
    b = small_gguf();
    b.tensor_count = b.tensors.size() + 1;
    EXPECT_FALSE(open(b.build()).ok());
  }
}

TEST(GgufHostile, TooManyOfEverything) {
  GgufBuilder b;
  b.tensor_count = (1 << 18) + 1;
  Bytes bytes = b.build();
  bytes.resize(std::size_t{34} << 18);
  VT_EXPECT_REFUSED(open(bytes), ErrorCode::kTooLarge, "tensors");
  b.tensor_count = 0;
  b.key_count = (1 << 16) + 1;
  Bytes keys = b.build();
  keys.resize(std::size_t{16} << 16);
  VT_EXPECT_REFUSED(open(keys), ErrorCode::kTooLarge, "keys");
  b.key_count.reset();
  b.array("long", test::kU8, (1 << 22) + 1, Bytes((1 << 22) + 1));
  Bytes array = b.build();
  VT_EXPECT_REFUSED(open(array), ErrorCode::kTooLarge, "'long'");
}

TEST(GgufHostile, Keys) {
  GgufBuilder b = small_gguf();
  refuse(b.string("general.architecture", "x"), "'general.architecture'", "twice");
  b = small_gguf();
  refuse(b.u32("", 1), "empty");
  for (std::string_view key : {"a\nb", "a\xFF", "\xC0\x80"}) {
    b = small_gguf();
    refuse(b.u32(key, 1), "printable");
  }
  b = small_gguf();
  b.u32(std::string("a").append(600, 'k'), 1);
  Bytes bytes = b.build();
  VT_EXPECT_REFUSED(open(bytes), ErrorCode::kTooLarge, "'akkk");
  for (std::uint64_t length :
       {kHuge, ~std::uint64_t{0}, ~std::uint64_t{0} - 7, std::uint64_t{1} << 40}) {
    b = small_gguf();
    std::memcpy(b.keys[5].data(), &length, 8);
    refuse(b, "key 5");
  }
  for (std::uint32_t type : {13u, 255u, ~0u}) {
    b = small_gguf();
    refuse(b.key("k.odd", type, Bytes(8)), "'k.odd'", std::to_string(type));
  }
  b = small_gguf();
  refuse(b.key("k.truth", test::kBool, number_bytes<std::uint8_t>(2)), "'k.truth'");
}

TEST(GgufHostile, StringsAndArrays) {
  for (std::uint64_t length :
       {kHuge, ~std::uint64_t{0}, ~std::uint64_t{0} - 7, std::uint64_t{1} << 31}) {
    GgufBuilder b = small_gguf();
    refuse(b.key("k.text", test::kString, number_bytes(length)), "'k.text'");
    for (std::uint32_t type : {test::kU8, test::kU64, test::kF64, test::kString}) {
      b = small_gguf();
      refuse(b.array("k.list", type, length, Bytes(16)), "'k.list'");
    }
    b = small_gguf();
    refuse(b.array("k.list", test::kString, 1, number_bytes(length)), "'k.list'");
  }
  GgufBuilder b = small_gguf();
  refuse(b.array("k.list", 77, 1, Bytes(8)), "'k.list'", "77");
  // 2^61 elements of 8 bytes wrap to 0.
  b = small_gguf();
  refuse(b.array("k.list", test::kI64, std::uint64_t{1} << 61, Bytes(8)), "'k.list'");
  b = small_gguf();
  b.array("k.nested", test::kArray, std::uint64_t{1} << 62, Bytes(64));
  Bytes bytes = b.build();
  VT_EXPECT_REFUSED(open(bytes), ErrorCode::kUnsupported, "'k.nested'");
}

TEST(GgufHostile, Alignment) {
  for (std::uint32_t alignment : {0u, 1u, 2u, 3u, 7u, 33u, 1u << 17, 1u << 31, ~0u}) {
    GgufBuilder b;
    b.u32("general.alignment", alignment).tensor("a", {4});
    refuse(b, "'general.alignment'", std::to_string(alignment));
  }
  auto typed = [](std::uint32_t type, const Bytes& value) {
    GgufBuilder b;
    b.key("general.alignment", type, value).tensor("a", {4});
    refuse(b, "'general.alignment'", std::to_string(type));
  };
  typed(test::kI32, number_bytes<std::int32_t>(32));
  typed(test::kU64, number_bytes<std::uint64_t>(kHuge));
  typed(test::kF32, number_bytes(32.0F));
  typed(test::kString, test::bytes_of({"\2\0\0\0\0\0\0\0"
                                       "32",
                                       10}));
  typed(test::kArray, Bytes(12));
}

TEST(GgufHostile, TensorNames) {
  GgufBuilder b = small_gguf();
  refuse(b.tensor("a", {4}), "'a'", "twice");
  b = small_gguf();
  refuse(b.tensor("", {4}), "tensor 2", "empty");
  b = small_gguf();
  refuse(b.tensor(std::string("a\0b", 3), {4}), "tensor 2", "printable");
  b = small_gguf();
  b.tensor(std::string(300, 'n'), {4});
  Bytes bytes = b.build();
  VT_EXPECT_REFUSED(open(bytes), ErrorCode::kTooLarge, "tensor 2");
  for (std::uint64_t length : {kHuge, ~std::uint64_t{0}, ~std::uint64_t{0} - 7}) {
    b = small_gguf();
    b.last().name_length = length;
    refuse(b, "tensor 1");
  }
}

TEST(GgufHostile, Ranks) {
  for (std::uint32_t rank : {0u, 5u, 1u << 31, ~0u}) {
    GgufBuilder b = small_gguf();
    b.last().rank = rank;
    refuse(b, "'b'", std::to_string(rank));
  }
}

TEST(GgufHostile, Shapes) {
  refuse(with_tensor({0}, 0, 0), "'bad'", "0");
  refuse(with_tensor({32, 0}, 8, 0), "'bad'", "0");
  refuse(with_tensor({4, 4, 0, 4}, 0, 0), "'bad'", "0");
  std::uint64_t two = 1;
  std::vector<std::vector<std::uint64_t>> too_big = {
      {kHuge},
      {~std::uint64_t{0}},
      {two << 32, two << 31},
      {two << 32, two << 32},
      {two << 33, two << 31, 1, 1},
      {two << 16, two << 16, two << 16, two << 16},
      {3, 6148914691236517206},  // 3 * (2^64 + 2) / 3 wraps to 2
      {4, (two << 62) - 1},
      {two << 20, (two << 42) + 1, 4, 1},
  };
  for (const auto& dims : too_big)
    for (std::uint32_t type : {0u, 8u, 12u}) refuse(with_tensor(dims, type, 64), "'bad'");
  // Elements below 2^63, bytes above.
  refuse(with_tensor({two << 31, two << 31}, 0, 64), "'bad'", "2^63");
  refuse(with_tensor({kHuge - 32}, 8, 64), "'bad'", "2^63");
  // Sizes that fit in 64 bits but in no file.
  refuse(with_tensor({4, (two << 42) + 1}, 0, 64), "'bad'", "data section");
  refuse(with_tensor({two << 60}, 24, 64), "'bad'", "data section");
}

TEST(GgufHostile, Blocks) {
  refuse(with_tensor({31}, 8, 34), "'bad'", "q8_0", "32");
  refuse(with_tensor({33}, 2, 36), "'bad'", "q4_0");
  refuse(with_tensor({128, 2}, 12, 144), "'bad'", "q4_k", "256");
  refuse(with_tensor({1, 256}, 14, 210), "'bad'", "q6_k");
}

TEST(GgufHostile, Types) {
  for (std::uint32_t type : {4u, 5u, 43u, 1000u, 1001u, 65536u, 65544u, ~0u}) {
    GgufBuilder b = with_tensor({32}, type, 128);
    Bytes bytes = b.build();
    VT_EXPECT_REFUSED(open(bytes), ErrorCode::kUnsupported, "'bad'", std::to_string(type));
  }
}

TEST(GgufHostile, Offsets) {
  Bytes whole = small_gguf().build();
  for (std::uint64_t offset : {std::uint64_t{64}, std::uint64_t{whole.size() / 32 * 32}, kHuge,
                               ~std::uint64_t{0} - 31, std::uint64_t{1} << 40}) {
    GgufBuilder b = small_gguf();
    b.last().offset = offset;
    refuse(b, "'b'", "data section");
  }
  for (std::uint64_t offset : {1, 31, 33, 40}) {
    GgufBuilder b = small_gguf();
    b.last().offset = offset;
    refuse(b, "'b'", "alignment");
  }
  // The file's size without the padding: the offset counts from the data section, not the file.
  GgufBuilder b = small_gguf();
  b.last().offset = whole.size() - 1;
  refuse(b, "'b'");
}

TEST(GgufHostile, Overlaps) {
  GgufBuilder b = small_gguf();
  b.last().offset = 0;
  refuse(b, "'a'", "'b'", "overlap");
  b = GgufBuilder();
  b.tensor("x", {64}).tensor("y", {4}).tensor("z", {4});
  b.tensors[2].offset = 96;
  refuse(b, "'x'", "'z'", "overlap");
}

// Padded sizes whose sum wraps 2^64.
TEST(GgufHostile, SumOfSizes) {
  GgufBuilder b;
  for (int i = 0; i < 8; ++i) b.tensor(fmt::format("t{}", i), {std::uint64_t{1} << 59, 1}, 0, 0);
  refuse(b, "'t0'");
}

TEST(GgufHostile, WrongTypesOfKnownKeys) {
  auto refuse_key = [](std::string_view key, std::uint32_t type, const Bytes& value) {
    GgufBuilder b;
    b.key(key, type, value);
    refuse(b, fmt::format("'{}'", key));
  };
  refuse_key("general.architecture", test::kU32, number_bytes(1));
  refuse_key("tokenizer.ggml.eos_token_id", test::kF32, number_bytes(1.0F));
  refuse_key("tokenizer.ggml.eos_token_id", test::kI32, number_bytes(-1));
  refuse_key("tokenizer.ggml.eot_token_id", test::kU32, number_bytes(~0u));
  refuse_key("tokenizer.ggml.eom_token_id", test::kU64, number_bytes(kHuge));
  refuse_key("tokenizer.ggml.bos_token_id", test::kBool, number_bytes<std::uint8_t>(1));
  refuse_key("general.sampling.temp", test::kF32, number_bytes(0x7FC00000u));
  refuse_key("general.sampling.top_k", test::kF32, number_bytes(1.0F));
  refuse_key("split.count", test::kF32, number_bytes(1.0F));
}

// Reading an array as another type is an error that names the key, never another reading of bytes.
TEST(GgufHostile, WrongElementTypes) {
  const std::uint32_t types[] = {test::kU8,     test::kI8,  test::kU16, test::kI16,
                                 test::kU32,    test::kI32, test::kF32, test::kBool,
                                 test::kString, test::kU64, test::kI64, test::kF64};
  GgufBuilder b;
  for (std::uint32_t type : types) b.array(fmt::format("k{}", type), type, 3, Bytes(24));
  // The elements are exactly the bytes their type needs, else the next key would not parse.
  const std::size_t widths[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 8, 8, 8};
  for (std::size_t i = 0; i < b.keys.size(); ++i)
    b.keys[i].resize(b.keys[i].size() - 24 + 3 * widths[i]);
  Bytes bytes = b.build();
  auto model = open(bytes);
  ASSERT_TRUE(model.ok()) << model.error().message;
  const Meta& meta = (*model)->meta();
  for (std::uint32_t type : types) {
    std::string key = fmt::format("k{}", type);
    bool is_float = type == test::kF32 || type == test::kF64;
    bool is_string = type == test::kString, is_bool = type == test::kBool;
    EXPECT_EQ(meta.get_floats(key).ok(), is_float) << key;
    EXPECT_EQ(meta.get_strings(key).ok(), is_string) << key;
    EXPECT_EQ(meta.get_bools(key).ok(), is_bool) << key;
    EXPECT_EQ(meta.get_ints(key).ok(), !is_float && !is_string && !is_bool) << key;
    if (!is_float)
      VT_EXPECT_REFUSED(meta.get_floats(key), ErrorCode::kMalformed, fmt::format("'{}'", key));
    VT_EXPECT_REFUSED(meta.get_int(key), ErrorCode::kMalformed, fmt::format("'{}'", key), "array");
  }
}

TEST(GgufHostile, NotAFile) {
  test::TempFolder folder;
  folder.write("tiny.gguf", "GGUF").write("none.gguf", "").write("model.bin", "PK\3\4 zip");
  VT_EXPECT_REFUSED(ModelFile::open(folder.path("tiny.gguf")), ErrorCode::kMalformed, "tiny.gguf");
  VT_EXPECT_REFUSED(ModelFile::open(folder.path("none.gguf")), ErrorCode::kMalformed, "none.gguf");
  VT_EXPECT_REFUSED(ModelFile::open(folder.path("model.bin")), ErrorCode::kUnsupported,
                    "model.bin");
  VT_EXPECT_REFUSED(ModelFile::open(folder.path("absent.gguf")), ErrorCode::kNotFound, "absent");
  VT_EXPECT_REFUSED(ModelFile::open("/dev/null"), ErrorCode::kInvalid, "/dev/null");
  VT_EXPECT_REFUSED(ModelFile::open(std::string("a\0.gguf", 7)), ErrorCode::kInvalid, "NUL");
  VT_EXPECT_REFUSED(ModelFile::open(""), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace vitrine
