// Hashes that depend on a secret of the process. Whoever chooses the keys of a hash table (names in
// a request, words of a model file, states of a grammar) can otherwise choose keys that collide, and
// every lookup becomes a walk over all of them.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace vitrine {

using HashSecret = std::array<std::uint64_t, 2>;
HashSecret draw_secret();
// Drawn once.
inline const HashSecret& process_secret() {
  static const HashSecret secret = draw_secret();
  return secret;
}

// SipHash (Aumasson and Bernstein, 2012): kRounds for each word, kFinal at the end; 64 bits, or
// 128 with kWide.
template <int kRounds, int kFinal, bool kWide = false>
class SipHash {
 public:
  explicit SipHash(const HashSecret& secret)
      : v0_(0x736f6d6570736575 ^ secret[0]),
        v1_(0x646f72616e646f6d ^ secret[1] ^ (kWide ? 0xee : 0)),
        v2_(0x6c7967656e657261 ^ secret[0]),
        v3_(0x7465646279746573 ^ secret[1]) {}

  void add(std::uint64_t word) {
    v3_ ^= word;
    mix(kRounds);
    v0_ ^= word;
    bytes_ += 8;
  }
  // Only the last call may have a number of bytes that is no multiple of eight.
  void add(const void* data, std::size_t bytes) {
    const auto* p = static_cast<const unsigned char*>(data);
    for (; bytes >= 8; bytes -= 8, p += 8) {
      std::uint64_t word;
      std::memcpy(&word, p, 8);
      add(word);
    }
    tail_ = 0;
    if (bytes > 0) std::memcpy(&tail_, p, bytes);
    bytes_ += bytes;
  }
  std::uint64_t finish() {
    add(tail_ | (bytes_ << 56));
    v2_ ^= kWide ? 0xee : 0xff;
    mix(kFinal);
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }
  // The other 64 bits; after finish().
  std::uint64_t finish_second() requires kWide {
    v1_ ^= 0xdd;
    mix(kFinal);
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  void mix(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      v0_ += v1_, v2_ += v3_;
      v1_ = std::rotl(v1_, 13) ^ v0_, v3_ = std::rotl(v3_, 16) ^ v2_;
      v0_ = std::rotl(v0_, 32);
      v2_ += v1_, v0_ += v3_;
      v1_ = std::rotl(v1_, 17) ^ v2_, v3_ = std::rotl(v3_, 21) ^ v0_;
      v2_ = std::rotl(v2_, 32);
    }
  }
  std::uint64_t v0_, v1_, v2_, v3_;
  std::uint64_t bytes_ = 0, tail_ = 0;
};

// SipHash-1-3 with the process's secret.
std::uint64_t keyed_hash(std::string_view bytes);

// Cheap and good, but not keyed.
inline std::uint64_t hash_mix(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}
// For pairs of numbers.
inline std::uint64_t keyed_mix(std::uint64_t a, std::uint64_t b) {
  const HashSecret& secret = process_secret();
  return hash_mix(a ^ secret[0], b ^ secret[1]);
}

}  // namespace vitrine
