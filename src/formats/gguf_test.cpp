#include "formats/gguf.h"

#include <gtest/gtest.h>

#include "formats/storage.h"
#include "formats/test_files.h"

namespace vitrine {
namespace {

using test::Bytes;
using test::GgufBuilder;
using test::small_gguf;

std::unique_ptr<ModelFile> open(const Bytes& bytes) {
  auto model = ModelFile::open_gguf(bytes, "m.gguf");
  EXPECT_TRUE(model.ok()) << model.error().message;
  return model.ok() ? std::move(*model) : nullptr;
}

TEST(Gguf, ReadsTensors) {
  for (std::uint32_t version : {2, 3}) {
    GgufBuilder b = small_gguf();
    b.version = version;
    Bytes bytes = b.build();
    auto model = open(bytes);
    ASSERT_NE(model, nullptr);
    EXPECT_EQ(model->kind(), FileKind::kGguf);
    EXPECT_EQ(model->architecture(), "llama");
    EXPECT_EQ(model->path(), "m.gguf");
    ASSERT_EQ(model->tensors().size(), 2u);
    const TensorInfo* a = model->find("a");
    ASSERT_NE(a, nullptr);
    EXPECT_EQ(a->shape, Shape({3, 2}));
    EXPECT_EQ(a->dtype, DType::kF32);
    ASSERT_EQ(a->data.size(), 24u);
    float last = 0;
    std::memcpy(&last, a->data.data() + 20, 4);
    EXPECT_EQ(last, 5.0F);
    EXPECT_EQ(model->find("b")->data.size(), 68u);
    EXPECT_EQ(model->find("c"), nullptr);
    EXPECT_EQ(model->generation().eos_ids, std::vector<std::int32_t>{2});
    EXPECT_EQ(model->generation().bos_id, 1);
    test::walk(*model);
  }
}

TEST(Gguf, ReadsEveryValueType) {
  Bytes bytes = small_gguf().build();
  auto model = open(bytes);
  ASSERT_NE(model, nullptr);
  const Meta& meta = model->meta();
  EXPECT_EQ(*meta.get_int("k.u8"), 200);
  EXPECT_EQ(*meta.get_int("k.i8"), -100);
  EXPECT_EQ(*meta.get_int("k.u16"), 60000);
  EXPECT_EQ(*meta.get_int("k.i16"), -30000);
  EXPECT_EQ(*meta.get_int("k.i32"), -2000000000);
  EXPECT_EQ(*meta.get_int("k.i64"), -5);
  EXPECT_EQ(*meta.get_float("k.f64"), 0.1);
  EXPECT_EQ(*meta.get_float("k.f32"), 0.5);
  EXPECT_EQ(*meta.get_float("k.i8"), -100.0);
  EXPECT_TRUE(*meta.get_bool("k.bool"));
  EXPECT_EQ(*meta.get_string("general.architecture"), "llama");
  EXPECT_EQ(*meta.get_strings("tokenizer.ggml.tokens"),
            (std::vector<std::string_view>{"<s>", "", "\xE2\x96\x81the"}));
  EXPECT_EQ(*meta.get_floats("tokenizer.ggml.scores"), (std::vector<float>{1, -2}));
  EXPECT_EQ(*meta.get_ints("tokenizer.ggml.token_type"), (std::vector<std::int64_t>{1, -1}));
  EXPECT_EQ(*meta.get_bools("k.bools"), (std::vector<bool>{true, false}));
  EXPECT_EQ(meta.get_int("k.u64").error().code, ErrorCode::kMalformed);
}

TEST(Gguf, ReadsTheAlignment) {
  for (std::uint32_t alignment : {8, 64, 4096}) {
    GgufBuilder b;
    b.alignment = alignment;
    b.u32("general.alignment", alignment).tensor("a", {3}).tensor("b", {1});
    Bytes bytes = b.build();
    auto model = open(bytes);
    ASSERT_NE(model, nullptr);
    std::size_t start = (b.metadata_size() + alignment - 1) / alignment * alignment;
    EXPECT_EQ(model->find("a")->data.data(), bytes.data() + start);
  }
}

// A hole, data in another order than the infos, and a rest after the last tensor are all allowed.
TEST(Gguf, AllowsHolesAndARest) {
  GgufBuilder b;
  b.tensor("a", {2}).tensor("b", {100});
  b.tensors[0].offset = 448, b.tensors[1].offset = 32;
  Bytes bytes = b.build();
  bytes.resize(bytes.size() + 100);
  auto model = open(bytes);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->find("a")->data.data() - model->find("b")->data.data(), 416);
}

TEST(Gguf, OpensWithoutTensorsOrKeys) {
  GgufBuilder b;
  Bytes bytes = b.build();
  auto model = open(bytes);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->architecture(), "");
  EXPECT_TRUE(model->tensors().empty());
  EXPECT_FALSE(model->generation().bos_id.has_value());
}

// Types that nothing here decodes still have a size, so that the file can be inspected.
TEST(Gguf, OpensTypesWithoutADecoder) {
  GgufBuilder b;
  b.tensor("q2", {512}, 10, 168).tensor("iq4", {256, 2}, 23, 272).tensor("mx", {64}, 39, 34);
  Bytes bytes = b.build();
  auto model = open(bytes);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(dtype_name(model->find("q2")->dtype), "q2_k");
  EXPECT_EQ(dtype_name(model->find("iq4")->dtype), "iq4_xs");
  EXPECT_EQ(dtype_name(model->find("mx")->dtype), "mxfp4");
}

TEST(Gguf, KnowsHowEmbeddingsArePooled) {
  for (auto [kind, name] : {std::pair{1, "mean"}, {3, "last"}, {2, "cls"}}) {
    GgufBuilder b;
    b.string("general.architecture", "qwen3").u32("qwen3.pooling_type", kind);
    Bytes bytes = b.build();
    auto model = open(bytes);
    ASSERT_NE(model, nullptr);
    EXPECT_EQ(model->generation().pooling, name);
  }
  GgufBuilder none;
  none.string("general.architecture", "qwen3").u32("qwen3.pooling_type", 0);
  Bytes bytes = none.build();
  EXPECT_EQ(open(bytes)->generation().pooling, std::nullopt);
}

TEST(Gguf, CollectsEveryEndToken) {
  GgufBuilder b;
  b.u32("tokenizer.ggml.eos_token_id", 5).u32("tokenizer.ggml.eot_token_id", 9);
  b.u32("tokenizer.ggml.eom_token_id", 5);
  b.f32("general.sampling.temp", 0.5F).key("general.sampling.top_k", 5, test::number_bytes(20));
  b.f32("general.sampling.penalty_repeat", 2).f32("general.sampling.top_p", 0.25F);
  Bytes bytes = b.build();
  auto model = open(bytes);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->generation().eos_ids, (std::vector<std::int32_t>{5, 9}));
  EXPECT_EQ(model->generation().temperature, 0.5);
  EXPECT_EQ(model->generation().top_p, 0.25);
  EXPECT_EQ(model->generation().top_k, 20);
  EXPECT_EQ(model->generation().repetition_penalty, 2.0);
  EXPECT_FALSE(model->generation().min_p.has_value());
}

class GgufSplit : public testing::Test {
 protected:
  // Shard i of `count` with one tensor "t<i>"; the first also carries the model's keys.
  GgufBuilder shard(std::uint16_t number, std::uint16_t count, std::int32_t total) {
    GgufBuilder b;
    if (number == 0) b.string("general.architecture", "llama");
    b.key("split.no", test::kU16, test::number_bytes(number));
    b.key("split.count", test::kU16, test::number_bytes(count));
    b.key("split.tensors.count", test::kI32, test::number_bytes(total));
    b.tensor(fmt::format("t{}", number), {4});
    return b;
  }
  std::string name(int number, int count) {
    return fmt::format("m-{:05}-of-{:05}.gguf", number, count);
  }
  void write_all(int count) {
    for (int i = 0; i < count; ++i)
      folder_.write(
          name(i + 1, count),
          shard(static_cast<std::uint16_t>(i), static_cast<std::uint16_t>(count), count).build());
  }
  auto open_shard(int number, int count) {
    return ModelFile::open(folder_.path(name(number, count)));
  }
  test::TempFolder folder_;
};

TEST_F(GgufSplit, AnyFileOpensAll) {
  write_all(3);
  for (int i = 1; i <= 3; ++i) {
    auto model = open_shard(i, 3);
    ASSERT_TRUE(model.ok()) << model.error().message;
    EXPECT_EQ((*model)->architecture(), "llama");
    EXPECT_EQ((*model)->tensors().size(), 3u);
    EXPECT_NE((*model)->find("t2"), nullptr);
    test::walk(**model);
  }
}

TEST_F(GgufSplit, RefusesAMissingFile) {
  write_all(3);
  std::filesystem::remove(folder_.path(name(2, 3)));
  VT_EXPECT_REFUSED(open_shard(1, 3), ErrorCode::kNotFound, "m-00002-of-00003.gguf");
}

TEST_F(GgufSplit, RefusesWrongCounts) {
  for (int count : {0, -1, 65536, 1 << 30}) {
    GgufBuilder b;
    b.key("split.no", test::kI32, test::number_bytes(0));
    b.key("split.count", test::kI32, test::number_bytes(count));
    folder_.write(name(1, 2), b.build());
    VT_EXPECT_REFUSED(open_shard(1, 2), ErrorCode::kMalformed, "split.count");
  }
  write_all(2);
  folder_.write(name(2, 2), shard(1, 3, 2).build());
  VT_EXPECT_REFUSED(open_shard(1, 2), ErrorCode::kMalformed, "split.count", "m-00002-of-00002");
  folder_.write(name(2, 2), shard(0, 2, 2).build());
  VT_EXPECT_REFUSED(open_shard(1, 2), ErrorCode::kMalformed, "split.no", "m-00002-of-00002");
  folder_.write(name(2, 2), small_gguf().build());
  VT_EXPECT_REFUSED(open_shard(1, 2), ErrorCode::kMalformed, "split.count", "m-00002-of-00002");
}

TEST_F(GgufSplit, RefusesWrongNumbers) {
  folder_.write(name(1, 2), shard(7, 2, 2).build());
  VT_EXPECT_REFUSED(open_shard(1, 2), ErrorCode::kMalformed, "split.no");
  folder_.write(name(1, 2), shard(1, 2, 2).build());
  VT_EXPECT_REFUSED(open_shard(1, 2), ErrorCode::kInvalid, "NAME-00002-of-00002.gguf");
  folder_.write("other.gguf", shard(0, 2, 2).build());
  VT_EXPECT_REFUSED(ModelFile::open(folder_.path("other.gguf")), ErrorCode::kInvalid,
                    "NAME-00001-of-00002.gguf");
  GgufBuilder b;
  b.key("split.count", test::kU16, test::number_bytes<std::uint16_t>(2));
  folder_.write(name(1, 2), b.build());
  VT_EXPECT_REFUSED(open_shard(1, 2), ErrorCode::kNotFound, "split.no");
}

TEST_F(GgufSplit, RefusesWrongTensorCountAndDuplicates) {
  write_all(2);
  folder_.write(name(1, 2), shard(0, 2, 5).build());
  VT_EXPECT_REFUSED(open_shard(1, 2), ErrorCode::kMalformed, "split.tensors.count");
  write_all(2);
  GgufBuilder b = shard(1, 2, 2);
  b.last().name = "t0";
  folder_.write(name(2, 2), b.build());
  VT_EXPECT_REFUSED(open_shard(1, 2), ErrorCode::kMalformed, "'t0'", "twice");
}

TEST_F(GgufSplit, RefusesASplitInMemory) {
  Bytes bytes = shard(0, 2, 2).build();
  VT_EXPECT_REFUSED(ModelFile::open_gguf(bytes, "m"), ErrorCode::kUnsupported, "split.count");
}

TEST(Storage, NamesTypes) {
  EXPECT_EQ(dtype_name(DType::kF32), "f32");
  EXPECT_EQ(dtype_name(DType{12}), "q4_k");
  EXPECT_EQ(dtype_name(DType{16}), "iq2_xxs");
  EXPECT_EQ(dtype_name(DType::kF8E4M3), "f8_e4m3");
  EXPECT_EQ(dtype_name(DType::kU64), "u64");
  EXPECT_EQ(dtype_name(DType{999}), "type 999");
  EXPECT_EQ(find_ggml_type(4), nullptr);
  EXPECT_EQ(find_ggml_type(1000), nullptr);  // a number of ours, not of the file format
}

}  // namespace
}  // namespace vitrine
