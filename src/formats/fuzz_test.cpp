// Seeded mutations of valid files: whatever opens is read in full. Worth most under ASan.
#include <gtest/gtest.h>

#include <random>

#include "formats/hf_config.h"
#include "formats/hf_index.h"
#include "formats/safetensors.h"
#include "formats/test_files.h"

namespace vitrine {
namespace {

using test::Bytes;

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  // One to three changes, most of them in the first `hot` bytes.
  Bytes mutate(const Bytes& original, std::size_t hot) {
    Bytes bytes = original;
    for (std::size_t n = 1 + below(3); n > 0; --n) change(bytes, hot);
    bytes.shrink_to_fit();
    return bytes;
  }

 private:
  std::size_t below(std::size_t bound) { return bound == 0 ? 0 : random_() % bound; }

  void change(Bytes& bytes, std::size_t hot) {
    if (bytes.empty()) return;
    std::size_t at = below(below(8) == 0 ? bytes.size() : std::min(hot, bytes.size()));
    switch (below(8)) {
      case 0:
        bytes[at] ^= std::byte(1U << below(8));
        break;
      case 1:
        bytes[at] = std::byte(random_() & 0xFF);
        break;
      case 2:
        overwrite(bytes, at, odd_number(), 8);
        break;
      case 3:
        overwrite(bytes, at, odd_number(), 4);
        break;
      case 4:
        bytes.resize(at);
        break;
      case 5:
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), below(9), bytes[at]);
        break;
      case 6: {
        std::size_t end = std::min(bytes.size(), at + 1 + below(16));
        bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                    bytes.begin() + static_cast<std::ptrdiff_t>(end));
        break;
      }
      default: {
        std::size_t from = below(bytes.size());
        std::size_t size = std::min(below(32), bytes.size() - std::max(at, from));
        std::memmove(bytes.data() + at, bytes.data() + from, size);
      }
    }
  }

  std::uint64_t odd_number() {
    constexpr std::uint64_t kOdd[] = {0,
                                      1,
                                      7,
                                      32,
                                      255,
                                      65535,
                                      0x7FFFFFFF,
                                      0x80000000,
                                      0xFFFFFFFF,
                                      0x100000000,
                                      0x7FFFFFFFFFFFFFFF,
                                      0x8000000000000000,
                                      0xFFFFFFFFFFFFFFF8,
                                      0xFFFFFFFFFFFFFFFF};
    return kOdd[below(std::size(kOdd))] + below(3) - 1;
  }

  void overwrite(Bytes& bytes, std::size_t at, std::uint64_t value, std::size_t width) {
    std::memcpy(bytes.data() + at, &value, std::min(width, bytes.size() - at));
  }

  std::mt19937_64 random_;
};

std::string_view text_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(Fuzz, Gguf) {
  auto builder = test::small_gguf();
  Bytes original = builder.build();
  Mutator mutator(1);
  int opened = 0;
  for (int i = 0; i < 10000; ++i) {
    Bytes bytes = mutator.mutate(original, builder.metadata_size());
    test::reset_peak();
    auto model = ModelFile::open_gguf(bytes, "m");
    EXPECT_LT(test::peak_bytes(), std::size_t{64} << 20);
    if (!model.ok()) continue;
    ++opened;
    test::walk(**model);
  }
  // Some changes are harmless; if all or none were, the mutator would be wrong.
  EXPECT_GT(opened, 100);
  EXPECT_LT(opened, 9000);
}

TEST(Fuzz, Safetensors) {
  std::string header = test::small_safetensors_header();
  Bytes original = test::safetensors(header, test::kSmallSafetensorsData);
  Mutator mutator(2);
  int opened = 0;
  std::size_t sum = 0;
  for (int i = 0; i < 10000; ++i) {
    Bytes bytes = mutator.mutate(original, 8 + header.size());
    auto tensors = parse_safetensors(bytes, "m");
    if (!tensors.ok()) continue;
    ++opened;
    std::size_t covered = 0;
    for (const TensorInfo& t : *tensors) {
      covered += t.data.size();
      for (std::byte b : t.data) sum += static_cast<std::size_t>(b);
    }
    EXPECT_LE(covered, bytes.size());
  }
  EXPECT_GT(opened, 20);
  EXPECT_LT(opened, 9000);
  EXPECT_GT(sum, 0u);
}

TEST(Fuzz, ConfigAndIndex) {
  Bytes config = test::bytes_of(
      R"({"architectures":["A"],"a":{"b":[1,2.5,[3,null]],"c":true},"e":[2,3],"s":"\u00e9\n"})");
  Bytes index = test::bytes_of(
      R"({"metadata":{"n":[1]},"weight_map":{"a":"s1.safetensors","b":"s2.safetensors"}})");
  Mutator mutator(3);
  int opened = 0;
  for (int i = 0; i < 5000; ++i) {
    Bytes bytes = mutator.mutate(config, config.size());
    std::deque<std::string> texts;
    opened += parse_hf_config(text_of(bytes), "c", texts).ok();
    bytes = mutator.mutate(index, index.size());
    if (auto shards = parse_shard_index(text_of(bytes), "i"); shards.ok()) {
      ++opened;
      for (const std::string& file : shards->files)
        EXPECT_EQ(file.find_first_of(std::string_view("/\0", 2)), std::string::npos);
      for (const auto& [name, file] : shards->tensors) EXPECT_LT(file, shards->files.size());
    }
  }
  EXPECT_GT(opened, 100);
}

}  // namespace
}  // namespace vitrine
