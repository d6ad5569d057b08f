#include "formats/safetensors.h"

#include <gtest/gtest.h>

#include "formats/test_files.h"

namespace vitrine {
namespace {

using test::Bytes;
using test::safetensors;

auto parse(const Bytes& bytes) { return parse_safetensors(bytes, "m.safetensors"); }

template <typename... Parts>
void refuse(const Bytes& bytes, Parts... parts) {
  VT_EXPECT_REFUSED(parse(bytes), ErrorCode::kMalformed, "m.safetensors", parts...);
}

// A header with the tensor "t" of these fields, and what follows it.
std::string one(std::string_view dtype, std::string_view shape, std::string_view offsets,
                std::string_view rest = "") {
  return fmt::format(R"({{"t":{{"dtype":{},"shape":{},"data_offsets":{}}}{}}})", dtype, shape,
                     offsets, rest);
}

TEST(Safetensors, ReadsTensors) {
  Bytes bytes = safetensors(test::small_safetensors_header(), test::kSmallSafetensorsData);
  auto tensors = parse(bytes);
  ASSERT_TRUE(tensors.ok()) << tensors.error().message;
  ASSERT_EQ(tensors->size(), 4u);
  const TensorInfo& a = (*tensors)[0];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.dtype, DType::kF32);
  EXPECT_EQ(a.shape, Shape({2, 3}));
  EXPECT_EQ(a.data.size(), 24u);
  EXPECT_EQ((*tensors)[1].name, "b");
  EXPECT_EQ((*tensors)[1].data[0], std::byte{24});
  EXPECT_EQ((*tensors)[2].shape, Shape({0, 7}));
  EXPECT_TRUE((*tensors)[2].data.empty());
  EXPECT_EQ((*tensors)[3].shape.rank(), 0);
  EXPECT_EQ((*tensors)[3].data.size(), 8u);
}

TEST(Safetensors, ReadsEveryDtype) {
  const std::pair<const char*, std::size_t> types[] = {
      {"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2},    {"I64", 8},
      {"I32", 4}, {"I16", 2}, {"I8", 1},  {"U8", 1},      {"BOOL", 1},
      {"U16", 2}, {"U32", 4}, {"U64", 8}, {"F8_E4M3", 1}, {"F8_E5M2", 1}};
  for (auto [name, width] : types) {
    auto header = one(fmt::format("\"{}\"", name), "[3]", fmt::format("[0,{}]", 3 * width));
    auto tensors = parse(safetensors(header, 3 * width));
    EXPECT_TRUE(tensors.ok()) << tensors.error().message;
  }
}

TEST(Safetensors, AllowsAnEmptyFile) {
  EXPECT_TRUE(parse(safetensors("{}", 0)).ok());
  EXPECT_TRUE(parse(safetensors("{}     ", 0)).ok());
  EXPECT_TRUE(parse(safetensors(one("\"U8\"", "[0,0,0]", "[0,0]"), 0)).ok());
}

TEST(SafetensorsHostile, TruncationAtEveryByte) {
  Bytes bytes = safetensors(test::small_safetensors_header(), test::kSmallSafetensorsData);
  for (std::size_t size = 0; size < bytes.size(); ++size) refuse(test::prefix_of(bytes, size));
  bytes.push_back(std::byte{0});
  refuse(bytes, "'scalar'");
}

TEST(SafetensorsHostile, HeaderLength) {
  Bytes bytes = safetensors(test::small_safetensors_header(), test::kSmallSafetensorsData);
  std::uint64_t size = bytes.size(), two = 2;
  for (std::uint64_t length : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{7}, size - 7, size,
                               std::uint64_t{100'000'000}}) {
    std::memcpy(bytes.data(), &length, 8);
    refuse(bytes);
  }
  for (std::uint64_t length :
       {std::uint64_t{100'000'001}, two << 62, ~std::uint64_t{0}, ~std::uint64_t{0} - 7}) {
    std::memcpy(bytes.data(), &length, 8);
    VT_EXPECT_REFUSED(parse(bytes), ErrorCode::kTooLarge, "100000000");
  }
}

TEST(SafetensorsHostile, NotTheFormatsJson) {
  for (std::string_view header :
       {" {}", "\n{}", "\xEF\xBB\xBF{}", "[]", "null", "{", "}", "{}}", "{} {}", "{},", "{}\n{}",
        "{}\n", "{}\t", "{}garbage", "{\"a\":NaN}", "{\"a\":Infinity}", "{'a':1}", "{/**/}",
        "{\"a\":{},}"})
    refuse(safetensors(header, 0));
  refuse(safetensors(std::string_view("{}\0", 3), 0));
  refuse(safetensors(std::string_view("\0{}", 3), 0));
  refuse(safetensors(one("\"U8\"", "[1]", "[0,1]", ",\"\xFF\":{}"), 1));
  refuse(safetensors(one("\"U8\"", "[1]", "[0,1]", ",\"\xED\xA0\x80\":{}"), 1));
}

TEST(SafetensorsHostile, Nesting) {
  std::string deep = "{\"t\":";
  deep.append(1'000'000, '[');
  deep.append(1'000'000, ']');
  refuse(safetensors(deep + "}", 0));
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  refuse(safetensors(objects + "}", 0));
}

TEST(SafetensorsHostile, Duplicates) {
  const char* t = R"("t":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  refuse(safetensors(fmt::format("{{{},{}}}", t, t), 0), "'t'", "twice");
  refuse(safetensors(R"({"__metadata__":{},"__metadata__":{}})", 0), "__metadata__", "twice");
  refuse(safetensors(R"({"__metadata__":{"k":"1","k":"2"}})", 0), "'k'", "twice");
  refuse(safetensors(R"({"t":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}})", 0),
         "'t'", "'dtype'", "twice");
}

TEST(SafetensorsHostile, Metadata) {
  for (const char* value : {"1", "null", "[]", "{}", "true", "1.5"})
    refuse(safetensors(fmt::format(R"({{"__metadata__":{{"key":{}}}}})", value), 0), "'key'",
           "string");
  for (const char* value : {"1", "null", "[]", "\"x\""})
    refuse(safetensors(fmt::format(R"({{"__metadata__":{}}})", value), 0), "__metadata__");
}

TEST(SafetensorsHostile, Fields) {
  for (const char* entry : {"1", "null", "[]", "\"x\"", "true"})
    refuse(safetensors(fmt::format(R"({{"t":{}}})", entry), 0), "'t'");
  refuse(safetensors(R"({"t":{}})", 0), "'t'", "missing");
  refuse(safetensors(R"({"t":{"dtype":"U8","shape":[0]}})", 0), "'t'", "missing");
  refuse(safetensors(R"({"t":{"dtype":"U8","data_offsets":[0,0]}})", 0), "'t'", "missing");
  refuse(safetensors(R"({"t":{"shape":[0],"data_offsets":[0,0]}})", 0), "'t'", "missing");
  refuse(safetensors(R"({"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":1}})", 0), "'t'",
         "'x'");
  for (const char* dtype : {"1", "null", "[]", "{}"})
    refuse(safetensors(one(dtype, "[0]", "[0,0]"), 0), "'t'", "dtype");
  for (const char* dtype : {"\"F31\"", "\"\"", "\"f32\"", "\"F4\"", "\"C64\""})
    VT_EXPECT_REFUSED(parse(safetensors(one(dtype, "[0]", "[0,0]"), 0)), ErrorCode::kUnsupported,
                      "'t'", "dtype");
}

TEST(SafetensorsHostile, Shapes) {
  for (const char* shape :
       {"[-1]", "[1.0]", "[1e0]", "[\"1\"]", "[null]", "[[1]]", "[true]", "1", "{}", "\"1\"",
        "null", "[9223372036854775808]", "[0,9223372036854775808]", "[99999999999999999999999]"})
    refuse(safetensors(one("\"U8\"", shape, "[0,1]"), 1), "'t'", "shape");
  for (const char* shape :
       {"[4294967296,4294967296]", "[9223372036854775807,2]", "[4611686018427387904,0,4]",
        "[0,4611686018427387904,4]", "[2305843009213693952]", "[6148914691236517206,3]"})
    for (const char* offsets : {"[0,0]", "[0,8]"})
      refuse(safetensors(one("\"F64\"", shape, offsets), 8), "'t'", "2^63");
  for (const char* shape : {"[2]", "[0]", "[]", "[1,1,4]", "[9007199254740992]"})
    refuse(safetensors(one("\"F32\"", shape, "[0,12]"), 12), "'t'");
}

TEST(SafetensorsHostile, Ranks) {
  for (int rank : {5, 1000}) {
    std::string shape = "[1";
    for (int i = 1; i < rank; ++i) shape += ",1";
    VT_EXPECT_REFUSED(parse(safetensors(one("\"U8\"", shape + "]", "[0,1]"), 1)),
                      ErrorCode::kUnsupported, "'t'", "dimensions");
  }
}

TEST(SafetensorsHostile, Offsets) {
  for (const char* offsets :
       {"[4,0]", "[0]", "[]", "[0,4,8]", "[-4,0]", "[0,4.0]", "[\"0\",\"4\"]", "null", "4", "{}",
        "[18446744073709551612,18446744073709551616]", "[18446744073709551612,0]", "[0,5]", "[1,4]",
        "[4,8]", "[9223372036854775803,9223372036854775807]"})
    refuse(safetensors(one("\"F32\"", "[1]", offsets), 4), "'t'");
}

TEST(SafetensorsHostile, HolesOverlapsAndARest) {
  auto with_second = [](std::string_view begin, std::string_view end) {
    return one(
        "\"U8\"", "[4]", "[0,4]",
        fmt::format(R"(,"u":{{"dtype":"U8","shape":[4],"data_offsets":[{},{}]}})", begin, end));
  };
  EXPECT_TRUE(parse(safetensors(with_second("4", "8"), 8)).ok());
  refuse(safetensors(with_second("5", "9"), 9), "'u'", "hole");
  refuse(safetensors(with_second("3", "7"), 7), "'u'", "overlap");
  refuse(safetensors(with_second("0", "4"), 4), "overlap");
  refuse(safetensors(with_second("4", "8"), 9), "'u'");
  refuse(safetensors(with_second("4", "8"), 7), "'u'");
  refuse(safetensors(one("\"U8\"", "[4]", "[1,5]"), 5), "'t'", "hole");
  refuse(safetensors("{}", 1));
}

TEST(SafetensorsHostile, LongText) {
  std::string name(300, 'n');
  VT_EXPECT_REFUSED(
      parse(safetensors(
          fmt::format(R"({{"{}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}}})", name), 0)),
      ErrorCode::kTooLarge, "'nnn");
  VT_EXPECT_REFUSED(parse(safetensors("{\"" + std::string(3 << 20, 'n') + "\":{}}", 0)),
                    ErrorCode::kTooLarge, "'nnn");
  refuse(safetensors("{\"\":{}}", 0), "empty");
  refuse(safetensors("{\"a\\u0000b\":{}}", 0), "printable");
}

TEST(SafetensorsHostile, ManyKeys) {
  std::string header = "{\"__metadata__\":{";
  for (int i = 0; i < 70'000; ++i) header += fmt::format("\"{}\":\"\",", i);
  header.back() = '}';
  VT_EXPECT_REFUSED(parse(safetensors(header + "}", 0)), ErrorCode::kTooLarge, "__metadata__");
}

}  // namespace
}  // namespace vitrine
