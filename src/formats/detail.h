// Shared by the loaders of this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace vitrine::detail {

// Bounds on what a file may ask for, well above every published model. They bound the memory that
// opening takes where the file's size does not.
inline constexpr std::size_t kMaxTensors = std::size_t{1} << 18;
inline constexpr std::size_t kMaxNameBytes = 256;
inline constexpr std::size_t kMaxKeys = std::size_t{1} << 16;
inline constexpr std::size_t kMaxKeyBytes = 512;
inline constexpr std::size_t kMaxArray = std::size_t{1} << 22;

// A name from a file, fit for a message: shortened, with unprintable bytes replaced.
std::string quote_name(std::string_view name);
// Not empty, UTF-8, no control characters.
bool printable(std::string_view name);

// Little-endian reads that never pass the end.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::size_t position() const { return position_; }
  std::size_t remaining() const { return bytes_.size() - position_; }
  const std::byte* here() const { return bytes_.data() + position_; }

  template <typename T>
  [[nodiscard]] bool read(T& value) {
    if (remaining() < sizeof(T)) return false;
    std::memcpy(&value, here(), sizeof(T));
    position_ += sizeof(T);
    return true;
  }
  [[nodiscard]] bool skip(std::uint64_t count) {
    if (count > remaining()) return false;
    position_ += static_cast<std::size_t>(count);
    return true;
  }
  // u64 length, then bytes.
  [[nodiscard]] bool read_string(std::string_view& value) {
    std::uint64_t length = 0;
    if (!read(length) || length > remaining()) return false;
    value = {reinterpret_cast<const char*>(here()), static_cast<std::size_t>(length)};
    return skip(length);
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
};

}  // namespace vitrine::detail
