// For the tests of this folder: builders that make valid files and let a test break one thing, and
// a check that a refusal names its reason and stays cheap.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/model_file.h"
#include "formats/test_walk.h"

namespace vitrine::test {

using Bytes = std::vector<std::byte>;

inline void append(Bytes& out, std::string_view text) {
  std::size_t size = out.size();
  out.resize(size + text.size());
  if (!text.empty()) std::memcpy(out.data() + size, text.data(), text.size());
}

inline void append(Bytes& out, const Bytes& more) {
  append(out, std::string_view(reinterpret_cast<const char*>(more.data()), more.size()));
}

template <typename T>
void append_number(Bytes& out, T value) {
  append(out, std::string_view(reinterpret_cast<const char*>(&value), sizeof(value)));
}

inline Bytes bytes_of(std::string_view text) {
  Bytes out;
  append(out, text);
  return out;
}

template <typename T>
Bytes number_bytes(T value) {
  Bytes out;
  append_number(out, value);
  return out;
}

// The first `size` bytes in an allocation of exactly that size, so that a read past the end shows.
inline Bytes prefix_of(const Bytes& bytes, std::size_t size) {
  return Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
}

enum GgufType : std::uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

struct GgufTensor {
  std::string name;
  std::vector<std::uint64_t> dims;  // innermost first
  std::uint32_t type = 0;
  Bytes data;
  std::optional<std::uint64_t> offset, name_length;
  std::optional<std::uint32_t> rank;
};

class GgufBuilder {
 public:
  std::string magic = "GGUF";
  std::uint32_t version = 3;
  std::size_t alignment = 32;  // of the data; the key is the test's business
  std::optional<std::uint64_t> tensor_count, key_count;
  std::vector<GgufTensor> tensors;
  std::vector<Bytes> keys;  // encoded

  GgufBuilder& key(std::string_view name, std::uint32_t type, const Bytes& value);
  GgufBuilder& u32(std::string_view name, std::uint32_t value) {
    return key(name, kU32, number_bytes(value));
  }
  GgufBuilder& f32(std::string_view name, float value) {
    return key(name, kF32, number_bytes(value));
  }
  GgufBuilder& string(std::string_view name, std::string_view value);
  GgufBuilder& array(std::string_view name, std::uint32_t type, std::uint64_t count,
                     const Bytes& elements);
  GgufBuilder& strings(std::string_view name, const std::vector<std::string>& values);
  // An f32 tensor with elements 0, 1, 2...
  GgufBuilder& tensor(std::string name, std::vector<std::uint64_t> dims);
  GgufBuilder& tensor(std::string name, std::vector<std::uint64_t> dims, std::uint32_t type,
                      std::size_t bytes);
  GgufTensor& last() { return tensors.back(); }

  Bytes build();
  // Bytes before the padding and the data of what build() made last.
  std::size_t metadata_size() const { return metadata_size_; }

 private:
  std::size_t metadata_size_ = 0;
};

// A small model with every kind of value and two tensors, "a" (f32 [3, 2]) and "b" (q8_0 [2, 32]).
GgufBuilder small_gguf();

Bytes safetensors(std::string_view header, std::size_t data_bytes);
// Tensors "a" (F32 [2, 3]), "b" (BF16 [4]), "empty" (U8 [0, 7]) and "scalar" (I64 []).
std::string small_safetensors_header();
inline constexpr std::size_t kSmallSafetensorsData = 24 + 8 + 0 + 8;

class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  std::string path(std::string_view name = "") const;
  TempFolder& write(std::string_view name, std::string_view text);
  TempFolder& write(std::string_view name, const Bytes& bytes);

 private:
  std::filesystem::path folder_;
};

// Memory taken through operator new since the last reset, over what was live then.
void reset_peak();
std::size_t peak_bytes();

// `open` returns a Result. It must fail with `code`, name each of `parts`, and stay below 64 MiB.
template <typename Open>
void expect_refused(Open open, ErrorCode code, const std::vector<std::string>& parts,
                    const char* file, int line) {
  testing::ScopedTrace trace(file, line, "");
  reset_peak();
  auto result = open();
  EXPECT_LT(peak_bytes(), std::size_t{64} << 20);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(error_code_name(result.error().code), std::string(error_code_name(code)))
      << result.error().message;
  for (const std::string& part : parts)
    EXPECT_NE(result.error().message.find(part), std::string::npos)
        << "'" << part << "' is not in: " << result.error().message;
  EXPECT_LT(result.error().message.size(), 1000u);
}

}  // namespace vitrine::test

#define VT_EXPECT_REFUSED(expression, code, ...)                    \
  ::vitrine::test::expect_refused([&] { return expression; }, code, \
                                  std::vector<std::string>{__VA_ARGS__}, __FILE__, __LINE__)
