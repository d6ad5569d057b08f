#include "kv/prefix_key.h"

#include <bit>
#include <cstring>
#include <random>

namespace vitrine {
namespace {

// SipHash-2-4 with 128 bits of output (Aumasson and Bernstein, 2012), fed with whole words.
class SipHash {
 public:
  explicit SipHash(const std::array<std::uint64_t, 2>& secret)
      : v0_(0x736f6d6570736575 ^ secret[0]),
        v1_(0x646f72616e646f6d ^ secret[1] ^ 0xee),
        v2_(0x6c7967656e657261 ^ secret[0]),
        v3_(0x7465646279746573 ^ secret[1]) {}

  void add(std::uint64_t word) {
    v3_ ^= word;
    round();
    round();
    v0_ ^= word;
    bytes_ += 8;
  }
  void add(const void* data, std::size_t bytes) {
    const auto* p = static_cast<const unsigned char*>(data);
    for (; bytes >= 8; bytes -= 8, p += 8) {
      std::uint64_t word;
      std::memcpy(&word, p, 8);
      add(word);
    }
    tail_ = 0;
    std::memcpy(&tail_, p, bytes);
    bytes_ += bytes;
  }
  PrefixKey finish() {
    std::uint64_t last = tail_ | (bytes_ << 56);
    add(last);
    v2_ ^= 0xee;
    for (int i = 0; i < 4; ++i) round();
    std::uint64_t a = v0_ ^ v1_ ^ v2_ ^ v3_;
    v1_ ^= 0xdd;
    for (int i = 0; i < 4; ++i) round();
    return {a, v0_ ^ v1_ ^ v2_ ^ v3_};
  }

 private:
  void round() {
    v0_ += v1_, v2_ += v3_;
    v1_ = std::rotl(v1_, 13) ^ v0_, v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ = std::rotl(v0_, 32);
    v2_ += v1_, v0_ += v3_;
    v1_ = std::rotl(v1_, 17) ^ v2_, v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ = std::rotl(v2_, 32);
  }
  std::uint64_t v0_, v1_, v2_, v3_;
  std::uint64_t bytes_ = 0, tail_ = 0;
};

}  // namespace

PrefixHasher::PrefixHasher() {
  std::random_device random;
  for (std::uint64_t& word : secret_) word = static_cast<std::uint64_t>(random()) << 32 | random();
}

PrefixKey PrefixHasher::root(std::string_view salt) const {
  SipHash hash(secret_);
  hash.add(salt.data(), salt.size());
  return hash.finish();
}

PrefixKey PrefixHasher::extend(const PrefixKey& parent,
                               std::span<const std::int32_t> tokens) const {
  SipHash hash(secret_);
  hash.add(parent.a);
  hash.add(parent.b);
  hash.add(tokens.data(), tokens.size_bytes());
  return hash.finish();
}

}  // namespace vitrine
