#include "quant/format.h"

#include <gtest/gtest.h>
#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "quant/half.h"

namespace vitrine {
namespace {

std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }
float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }

std::uint16_t hardware_fp16(float x) {
  return static_cast<std::uint16_t>(_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT));
}

TEST(Half, EveryFp16ToFloat) {
  for (std::uint32_t h = 0; h < 65536; ++h) {
    auto half = static_cast<std::uint16_t>(h);
    float ours = fp16_to_float(half), theirs = _cvtsh_ss(half);
    if (std::isnan(theirs))
      EXPECT_TRUE(std::isnan(ours)) << h;
    else
      EXPECT_EQ(bits_of(ours), bits_of(theirs)) << h;
  }
}

TEST(Half, EveryFp16SurvivesTheRoundTrip) {
  for (std::uint32_t h = 0; h < 65536; ++h) {
    auto half = static_cast<std::uint16_t>(h);
    if ((h & 0x7FFF) > 0x7C00)
      EXPECT_TRUE(std::isnan(fp16_to_float(float_to_fp16(fp16_to_float(half))))) << h;
    else
      EXPECT_EQ(float_to_fp16(fp16_to_float(half)), half);
  }
}

// Every border where rounding changes: the halves, the points midway between two, and the floats
// right beside those.
TEST(Half, FloatToFp16AtEveryBorder) {
  for (std::uint32_t h = 0; h < 0x7C00; ++h) {
    float low = fp16_to_float(static_cast<std::uint16_t>(h));
    float high = h == 0x7BFF ? 65536.0F : fp16_to_float(static_cast<std::uint16_t>(h + 1));
    std::uint32_t middle = bits_of(low + (high - low) / 2);
    for (std::uint32_t bits : {bits_of(low), middle - 1, middle, middle + 1, bits_of(high) - 1})
      for (std::uint32_t sign : {0U, 0x80000000U}) {
        float x = float_of(bits | sign);
        ASSERT_EQ(float_to_fp16(x), hardware_fp16(x)) << x;
      }
  }
}

// All exponents and signs, with a stride that is prime to the mantissa.
TEST(Half, FloatToFp16OverAllFloats) {
  for (std::uint64_t b = 0; b < (std::uint64_t{1} << 32); b += 1021) {
    float x = float_of(static_cast<std::uint32_t>(b));
    if (std::isnan(x))
      ASSERT_TRUE(std::isnan(fp16_to_float(float_to_fp16(x)))) << b;
    else
      ASSERT_EQ(float_to_fp16(x), hardware_fp16(x)) << x;
  }
}

TEST(Half, EveryBf16) {
  for (std::uint32_t h = 0; h < 65536; ++h) {
    auto half = static_cast<std::uint16_t>(h);
    float x = bf16_to_float(half);
    EXPECT_EQ(bits_of(x), h << 16);
    if (std::isnan(x))
      EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(x))));
    else
      EXPECT_EQ(float_to_bf16(x), half);
  }
}

TEST(Half, FloatToBf16RoundsToNearestEven) {
  for (std::uint32_t h = 0; h < 0x7F80; ++h)
    for (std::uint32_t sign : {0U, 0x8000U}) {
      std::uint32_t base = (h | sign) << 16;
      auto low = static_cast<std::uint16_t>(h | sign), high = static_cast<std::uint16_t>(low + 1);
      EXPECT_EQ(float_to_bf16(float_of(base + 0x7FFF)), low);
      EXPECT_EQ(float_to_bf16(float_of(base + 0x8000)), h % 2 == 0 ? low : high);
      EXPECT_EQ(float_to_bf16(float_of(base + 0x8001)), high);
    }
  // A NaN whose payload is all in the lower half must not become infinity.
  EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(float_of(0x7F800001)))));
  EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(float_of(0xFFFFFFFF)))));
}

TEST(Format, IsFoundByNumberAndName) {
  EXPECT_FALSE(all_formats().empty());
  for (const Format& f : all_formats()) {
    EXPECT_EQ(find_format(f.info.dtype), &f);
    EXPECT_EQ(find_format(f.info.name), &f);
    EXPECT_EQ(format_bytes(f.info, 4 * f.info.block), 4 * f.info.bytes);
  }
  EXPECT_EQ(find_format("q9"), nullptr);
  EXPECT_EQ(find_format(DType{999}), nullptr);
}

// Ggml's numbers and sizes: a file is read by them.
TEST(Format, HasTheSizesOfTheFileFormat) {
  struct {
    const char* name;
    int number, block, bytes;
  } const expected[] = {{"f32", 0, 1, 4},       {"f16", 1, 1, 2},      {"bf16", 30, 1, 2},
                        {"q4_0", 2, 32, 18},    {"q8_0", 8, 32, 34},   {"q4_k", 12, 256, 144},
                        {"q5_k", 13, 256, 176}, {"q6_k", 14, 256, 210}};
  for (const auto& e : expected) {
    const Format* f = find_format(e.name);
    if (f == nullptr) continue;
    EXPECT_EQ(static_cast<int>(f->info.dtype), e.number) << e.name;
    EXPECT_EQ(f->info.block, e.block) << e.name;
    EXPECT_EQ(f->info.bytes, e.bytes) << e.name;
  }
}

std::vector<float> round_trip(const Format& f, const std::vector<float>& x) {
  auto blocks = static_cast<std::int64_t>(x.size()) / f.info.block;
  // One byte off, as blocks in a file are not aligned.
  std::vector<std::byte> data(1 + static_cast<std::size_t>(format_bytes(f.info, std::ssize(x))));
  std::vector<float> out(x.size());
  f.encode(x.data(), blocks, data.data() + 1);
  f.decode(data.data() + 1, blocks, out.data());
  return out;
}

struct Sample {
  std::string name;
  std::vector<float> values;
};

std::vector<Sample> samples() {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> uniform(0, 1);
  std::vector<Sample> all = {{"zeros", std::vector<float>(256)},
                             {"ones", std::vector<float>(256, 1.0F)},
                             {"minus", std::vector<float>(256, -0.7F)}};
  auto add = [&](const char* name, auto make) {
    Sample& s = all.emplace_back(Sample{name, std::vector<float>(4096)});
    std::generate(s.values.begin(), s.values.end(), make);
  };
  add("normal", [&] { return normal(random); });
  add("weights", [&] { return 0.02F * normal(random); });
  add("large", [&] { return 300 * normal(random); });
  add("positive", [&] { return uniform(random); });
  add("negative", [&] { return -uniform(random); });
  add("offset", [&] { return 5 + 0.1F * uniform(random); });
  int i = 0;
  add("outliers", [&] { return ++i % 97 == 0 ? 20 * normal(random) : normal(random); });
  add("sparse", [&] { return ++i % 31 == 0 ? normal(random) : 0.0F; });
  return all;
}

// The largest error of a block, as a share of the block's range (zero included): about 1.6 steps
// of as many bits as a weight takes.
TEST(Format, DecodesWhatItEncodedWithinItsBits) {
  for (const Format& f : all_formats()) {
    if (!f.info.quantized) continue;
    double bits = std::floor(8.0 * f.info.bytes / f.info.block);
    for (const Sample& s : samples()) {
      std::vector<float> out = round_trip(f, s.values);
      for (std::size_t b = 0; b < s.values.size(); b += static_cast<std::size_t>(f.info.block)) {
        float low = 0, high = 0, worst = 0;
        for (std::size_t i = b; i < b + static_cast<std::size_t>(f.info.block); ++i) {
          low = std::min(low, s.values[i]), high = std::max(high, s.values[i]);
          worst = std::max(worst, std::fabs(out[i] - s.values[i]));
        }
        EXPECT_LE(worst, 1.6 * std::exp2(-bits) * (high - low) + 1e-7)
            << f.info.name << " " << s.name << " block at " << b;
      }
    }
  }
}

TEST(Format, PlainTypesRoundOnce) {
  for (const Format& f : all_formats()) {
    if (f.info.quantized) continue;
    float relative = f.info.bytes == 4 ? 0 : f.info.dtype == DType::kF16 ? 0x1p-11F : 0x1p-8F;
    for (const Sample& s : samples()) {
      std::vector<float> out = round_trip(f, s.values);
      for (std::size_t i = 0; i < out.size(); ++i)
        ASSERT_LE(std::fabs(out[i] - s.values[i]),
                  relative * std::fabs(s.values[i]) + (relative > 0 ? 0x1p-25F : 0))
            << f.info.name << " " << s.name;
    }
  }
}

// Root mean square error over that of the values, on weights as models have them.
TEST(Format, KeepsTheUsualWeights) {
  struct {
    const char* name;
    double error;
  } const bounds[] = {
      {"q8_0", 0.006}, {"q6_k", 0.02}, {"q5_k", 0.04}, {"q4_k", 0.08}, {"q4_0", 0.1}};
  for (const auto& bound : bounds) {
    const Format* f = find_format(bound.name);
    if (f == nullptr) continue;
    for (const Sample& s : samples()) {
      if (s.name != "normal" && s.name != "weights" && s.name != "large") continue;
      std::vector<float> out = round_trip(*f, s.values);
      double error = 0, power = 0;
      for (std::size_t i = 0; i < out.size(); ++i) {
        error += std::pow(out[i] - s.values[i], 2);
        power += std::pow(s.values[i], 2);
      }
      EXPECT_LT(std::sqrt(error / power), bound.error) << bound.name << " " << s.name;
      EXPECT_GT(std::sqrt(error / power), bound.error / 4) << bound.name << " " << s.name;
    }
  }
}

// What decode gives can be stored again without a further change of more than rounding.
TEST(Format, EncodingTwiceChangesLittle) {
  for (const Format& f : all_formats()) {
    std::vector<float> x = samples()[3].values;
    std::vector<float> once = round_trip(f, x), twice = round_trip(f, once);
    double moved = 0, error = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      moved += std::pow(twice[i] - once[i], 2);
      error += std::pow(once[i] - x[i], 2);
    }
    EXPECT_LE(moved, error) << f.info.name;
  }
}

using Block = std::vector<std::uint8_t>;

std::vector<float> decode(const char* name, const Block& bytes) {
  const Format* f = find_format(name);
  EXPECT_EQ(bytes.size(), static_cast<std::size_t>(f->info.bytes));
  std::vector<float> out(static_cast<std::size_t>(f->info.block));
  f->decode(reinterpret_cast<const std::byte*>(bytes.data()), 1, out.data());
  return out;
}

TEST(Layout, PlainTypes) {
  EXPECT_EQ(decode("f32", {0x00, 0x00, 0x20, 0xC0})[0], -2.5F);
  EXPECT_EQ(decode("f16", {0x00, 0xC1})[0], -2.5F);
  EXPECT_EQ(decode("bf16", {0x20, 0xC0})[0], -2.5F);
}

TEST(Layout, Q8_0) {
  if (find_format("q8_0") == nullptr) GTEST_SKIP() << "not a part of this build";
  Block b = {0x00, 0x38};  // 0.5
  for (int i = 0; i < 32; ++i) b.push_back(static_cast<std::uint8_t>(i == 31 ? 128 : 4 * i));
  std::vector<float> w = decode("q8_0", b);
  EXPECT_EQ(w[0], 0.0F);
  EXPECT_EQ(w[3], 6.0F);
  EXPECT_EQ(w[30], 60.0F);
  EXPECT_EQ(w[31], -64.0F);
}

TEST(Layout, Q4_0) {
  if (find_format("q4_0") == nullptr) GTEST_SKIP() << "not a part of this build";
  Block b = {0x00, 0xC0};  // -2
  for (int i = 0; i < 16; ++i) b.push_back(static_cast<std::uint8_t>(i | (15 - i) << 4));
  std::vector<float> w = decode("q4_0", b);
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(w[static_cast<std::size_t>(i)], -2.0F * static_cast<float>(i - 8));
    EXPECT_EQ(w[static_cast<std::size_t>(i) + 16], -2.0F * static_cast<float>(7 - i));
  }
}

// d = 2, dmin = 0.5; scales 1 2 3 4 21 38 55 63, minimums 5 6 7 8 17 34 51 60.
const Block kScaleHead = {0x00, 0x40, 0x00, 0x38,  //
                          0x41, 0x82, 0xC3, 0xC4,  // scales 0-3, top bits of scales 4-7 (1 2 3 3)
                          0x45, 0x86, 0xC7, 0xC8,  // minimums 0-3, top bits of minimums 4-7
                          0x15, 0x26, 0x37, 0xCF};
const float kScale[] = {1, 2, 3, 4, 21, 38, 55, 63}, kMin[] = {5, 6, 7, 8, 17, 34, 51, 60};

TEST(Layout, Q4K) {
  if (find_format("q4_k") == nullptr) GTEST_SKIP() << "not a part of this build";
  Block b = kScaleHead;
  for (int chunk = 0; chunk < 4; ++chunk)
    for (int i = 0; i < 32; ++i)
      b.push_back(static_cast<std::uint8_t>((i + chunk) % 16 | (15 - i % 16) << 4));
  std::vector<float> w = decode("q4_k", b);
  for (std::size_t j = 0; j < 8; ++j)
    for (std::size_t i = 0; i < 32; ++i) {
      auto level = static_cast<float>(j % 2 == 0 ? (i + j / 2) % 16 : 15 - i % 16);
      EXPECT_EQ(w[32 * j + i], 2 * kScale[j] * level - 0.5F * kMin[j]) << j << " " << i;
    }
}

TEST(Layout, Q5K) {
  if (find_format("q5_k") == nullptr) GTEST_SKIP() << "not a part of this build";
  Block b = kScaleHead;
  for (int i = 0; i < 32; ++i) b.push_back(static_cast<std::uint8_t>(1 << (i % 8)));
  for (int chunk = 0; chunk < 4; ++chunk)
    for (int i = 0; i < 32; ++i)
      b.push_back(static_cast<std::uint8_t>((i + chunk) % 16 | (15 - i % 16) << 4));
  std::vector<float> w = decode("q5_k", b);
  for (std::size_t j = 0; j < 8; ++j)
    for (std::size_t i = 0; i < 32; ++i) {
      auto level =
          static_cast<float>((j % 2 == 0 ? (i + j / 2) % 16 : 15 - i % 16) + (i % 8 == j ? 16 : 0));
      EXPECT_EQ(w[32 * j + i], 2 * kScale[j] * level - 0.5F * kMin[j]) << j << " " << i;
    }
}

TEST(Layout, Q6K) {
  if (find_format("q6_k") == nullptr) GTEST_SKIP() << "not a part of this build";
  Block b(210);
  for (int g = 0; g < 16; ++g)
    b[192 + static_cast<std::size_t>(g)] = static_cast<std::uint8_t>(g - 8);
  b[208] = 0x00, b[209] = 0x34;  // 0.25
  // Zero levels are -32 each; then single weights are set by hand.
  b[5] = 0x21;        // weight 5 low 1, weight 69 low 2
  b[32 + 5] = 0x43;   // weight 37 low 3, weight 101 low 4
  b[128 + 5] = 0xE4;  // high bits 0, 1, 2, 3 of weights 5, 37, 69, 101
  b[64 + 9] = 0x0F;   // weight 137 low 15
  b[160 + 9] = 0x03;  // and its high bits 3
  std::vector<float> w = decode("q6_k", b);
  auto value = [](int i, int level) {
    return 0.25F * static_cast<float>(i / 16 - 8) * static_cast<float>(level - 32);
  };
  EXPECT_EQ(w[5], value(5, 1));
  EXPECT_EQ(w[37], value(37, 3 + 16));
  EXPECT_EQ(w[69], value(69, 2 + 32));
  EXPECT_EQ(w[101], value(101, 4 + 48));
  EXPECT_EQ(w[137], value(137, 15 + 48));
  EXPECT_EQ(w[0], value(0, 0));
  EXPECT_EQ(w[255], value(255, 0));
}

}  // namespace
}  // namespace vitrine
