// The builders of test_files.h, and an operator new that counts, for the whole test program.
#include "formats/test_files.h"

#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> live_bytes{0}, highest_bytes{0}, base_bytes{0};

void* counted(std::size_t size) {
  void* data = std::malloc(size);
  if (data == nullptr) return nullptr;
  std::size_t now = live_bytes += malloc_usable_size(data);
  std::size_t seen = highest_bytes.load();
  while (now > seen && !highest_bytes.compare_exchange_weak(seen, now)) {
  }
  return data;
}

void* counted_or_throw(std::size_t size) {
  void* data = counted(size);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}

void release(void* data) {
  if (data == nullptr) return;
  live_bytes -= malloc_usable_size(data);
  std::free(data);
}

}  // namespace

void* operator new(std::size_t size) { return counted_or_throw(size); }
void* operator new[](std::size_t size) { return counted_or_throw(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return counted(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return counted(size); }
void operator delete(void* data) noexcept { release(data); }
void operator delete[](void* data) noexcept { release(data); }
void operator delete(void* data, std::size_t) noexcept { release(data); }
void operator delete[](void* data, std::size_t) noexcept { release(data); }
void operator delete(void* data, const std::nothrow_t&) noexcept { release(data); }
void operator delete[](void* data, const std::nothrow_t&) noexcept { release(data); }

namespace vitrine::test {

void reset_peak() { highest_bytes = base_bytes = live_bytes.load(); }
std::size_t peak_bytes() { return highest_bytes - base_bytes; }

GgufBuilder& GgufBuilder::key(std::string_view name, std::uint32_t type, const Bytes& value) {
  Bytes& out = keys.emplace_back();
  append_number<std::uint64_t>(out, name.size());
  append(out, name);
  append_number(out, type);
  append(out, value);
  return *this;
}

GgufBuilder& GgufBuilder::string(std::string_view name, std::string_view value) {
  Bytes out = number_bytes<std::uint64_t>(value.size());
  append(out, value);
  return key(name, kString, out);
}

GgufBuilder& GgufBuilder::array(std::string_view name, std::uint32_t type, std::uint64_t count,
                                const Bytes& elements) {
  Bytes out = number_bytes(type);
  append_number(out, count);
  append(out, elements);
  return key(name, kArray, out);
}

GgufBuilder& GgufBuilder::strings(std::string_view name, const std::vector<std::string>& values) {
  Bytes out;
  for (const std::string& value : values) {
    append_number<std::uint64_t>(out, value.size());
    append(out, value);
  }
  return array(name, kString, values.size(), out);
}

GgufBuilder& GgufBuilder::tensor(std::string name, std::vector<std::uint64_t> dims) {
  std::size_t elements = 1;
  for (std::uint64_t dim : dims) elements *= dim;
  Bytes data;
  for (std::size_t i = 0; i < elements; ++i) append_number(data, static_cast<float>(i));
  tensors.push_back({std::move(name), std::move(dims), 0, std::move(data), {}, {}, {}});
  return *this;
}

GgufBuilder& GgufBuilder::tensor(std::string name, std::vector<std::uint64_t> dims,
                                 std::uint32_t type, std::size_t bytes) {
  tensors.push_back({std::move(name), std::move(dims), type, Bytes(bytes), {}, {}, {}});
  return *this;
}

Bytes GgufBuilder::build() {
  Bytes out = bytes_of(magic);
  append_number(out, version);
  append_number(out, tensor_count.value_or(tensors.size()));
  append_number(out, key_count.value_or(keys.size()));
  for (const Bytes& key : keys) append(out, key);
  auto padded = [this](std::size_t size) { return (size + alignment - 1) / alignment * alignment; };
  std::size_t offset = 0;
  for (const GgufTensor& t : tensors) {
    append_number(out, t.name_length.value_or(t.name.size()));
    append(out, t.name);
    append_number(out, t.rank.value_or(static_cast<std::uint32_t>(t.dims.size())));
    for (std::uint64_t dim : t.dims) append_number(out, dim);
    append_number(out, t.type);
    append_number(out, t.offset.value_or(offset));
    offset += padded(t.data.size());
  }
  metadata_size_ = out.size();
  for (const GgufTensor& t : tensors) {
    out.resize(padded(out.size()));
    append(out, t.data);
  }
  out.shrink_to_fit();
  return out;
}

GgufBuilder small_gguf() {
  GgufBuilder b;
  b.string("general.architecture", "llama").u32("general.alignment", 32);
  b.key("k.u8", kU8, number_bytes<std::uint8_t>(200));
  b.key("k.i8", kI8, number_bytes<std::int8_t>(-100));
  b.key("k.u16", kU16, number_bytes<std::uint16_t>(60000));
  b.key("k.i16", kI16, number_bytes<std::int16_t>(-30000));
  b.key("k.i32", kI32, number_bytes<std::int32_t>(-2000000000));
  b.key("k.u64", kU64, number_bytes<std::uint64_t>(~std::uint64_t{0}));
  b.key("k.i64", kI64, number_bytes<std::int64_t>(-5));
  b.key("k.f64", kF64, number_bytes(0.1));
  b.key("k.bool", kBool, number_bytes<std::uint8_t>(1));
  b.f32("k.f32", 0.5F);
  b.strings("tokenizer.ggml.tokens", {"<s>", "", "\xE2\x96\x81the"});
  b.array("tokenizer.ggml.scores", kF32, 2, bytes_of({"\0\0\x80\x3F\0\0\0\xC0", 8}));
  b.array("tokenizer.ggml.token_type", kI32, 2, bytes_of({"\1\0\0\0\xFF\xFF\xFF\xFF", 8}));
  b.array("k.bools", kBool, 2, bytes_of({"\1\0", 2}));
  b.u32("tokenizer.ggml.eos_token_id", 2).u32("tokenizer.ggml.bos_token_id", 1);
  b.tensor("a", {2, 3}).tensor("b", {32, 2}, 8, 68);
  return b;
}

Bytes safetensors(std::string_view header, std::size_t data_bytes) {
  Bytes out = number_bytes<std::uint64_t>(header.size());
  append(out, header);
  for (std::size_t i = 0; i < data_bytes; ++i) append_number(out, static_cast<std::uint8_t>(i));
  out.shrink_to_fit();
  return out;
}

std::string small_safetensors_header() {
  return R"({"__metadata__":{"format":"pt"},)"
         R"("b":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]},)"
         R"("a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
         R"("empty":{"dtype":"U8","shape":[0,7],"data_offsets":[32,32]},)"
         R"("scalar":{"dtype":"I64","shape":[],"data_offsets":[32,40]}}  )";
}

TempFolder::TempFolder() {
  static std::atomic<int> number{0};
  folder_ = std::filesystem::temp_directory_path() /
            fmt::format("vitrine_formats_{}_{}", ::getpid(), number++);
  std::filesystem::create_directories(folder_);
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string TempFolder::path(std::string_view name) const {
  return name.empty() ? folder_.string() : (folder_ / name).string();
}

TempFolder& TempFolder::write(std::string_view name, std::string_view text) {
  std::ofstream(path(name), std::ios::binary) << text;
  return *this;
}

TempFolder& TempFolder::write(std::string_view name, const Bytes& bytes) {
  return write(name, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

TEST(TestFiles, CountsAllocations) {
  reset_peak();
  { std::vector<char> block(1 << 20); }
  EXPECT_GE(peak_bytes(), std::size_t{1} << 20);
  EXPECT_LT(peak_bytes(), std::size_t{2} << 20);
}

}  // namespace vitrine::test
