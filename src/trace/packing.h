// Events as bytes: every member of events.def in order, numbers as the machine has them, a list as its
// length and its rows. For one process: nothing packed leaves it.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>

#include "base/check.h"
#include "trace/events.h"

namespace vitrine {

template <FieldType kType>
struct PackedAs {
  using type = std::uint8_t;
};
template <>
struct PackedAs<FieldType::kU64> {
  using type = std::uint64_t;
};
template <>
struct PackedAs<FieldType::kI64> {
  using type = std::int64_t;
};
template <>
struct PackedAs<FieldType::kF64> {
  using type = double;
};
template <>
struct PackedAs<FieldType::kI32> {
  using type = std::int32_t;
};
template <>
struct PackedAs<FieldType::kU16> {
  using type = std::uint16_t;
};
template <>
struct PackedAs<FieldType::kName> {
  using type = const char*;
};

inline constexpr std::size_t kMostText = 255;  // bytes of a text; the rest is cut

// Writes into the bytes that it is given; more than fit are our mistake.
class Packer {
 public:
  explicit Packer(std::span<std::byte> into)
      : begin_(into.data()), at_(begin_), end_(begin_ + into.size()) {}
  std::size_t size() const { return static_cast<std::size_t>(at_ - begin_); }

  template <FieldType kType, typename T>
  void operator()(FieldTag<kType>, const T& value) {
    if constexpr (kType == FieldType::kText) {
      const std::string_view text = std::string_view(value).substr(0, kMostText);
      put(static_cast<std::uint8_t>(text.size()));
      room(text.size());
      std::memcpy(at_, text.data(), text.size());
      at_ += text.size();
    } else {
      put(static_cast<typename PackedAs<kType>::type>(value));
    }
  }
  template <typename Row, typename List>
  void operator()(ListTag<Row>, const List& list) {
    put(static_cast<std::uint32_t>(list.size()));
    for (const auto& row : list) Row::visit(row, *this);
  }

 private:
  void room(std::size_t bytes) const {
    VT_CHECK(static_cast<std::size_t>(end_ - at_) >= bytes, "{} bytes packed", size());
  }
  template <typename T>
  void put(T value) {
    room(sizeof value);
    std::memcpy(at_, &value, sizeof value);
    at_ += sizeof value;
  }

  std::byte *begin_, *at_, *end_;
};

// Reads what a Packer wrote.
class Unpacker {
 public:
  explicit Unpacker(std::span<const std::byte> from) : at_(from.data()) {}

  template <FieldType kType, typename T>
  void operator()(FieldTag<kType>, T& value) {
    if constexpr (kType == FieldType::kText)
      value = text();
    else
      value = static_cast<T>(take<typename PackedAs<kType>::type>());
  }
  template <typename Row, typename List>
  void operator()(ListTag<Row>, List& list) {
    list.resize(take<std::uint32_t>());
    for (auto& row : list) Row::visit(row, *this);
  }

  template <typename T>
  T take() {
    T value;
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::string_view text() {
    const std::size_t size = take<std::uint8_t>();
    const auto* from = reinterpret_cast<const char*>(at_);
    at_ += size;
    return {from, size};
  }

 private:
  const std::byte* at_;
};

// Reads the fields of an event without its lists, which stand behind them: without memory.
class HeadUnpacker : public Unpacker {
 public:
  using Unpacker::Unpacker;
  using Unpacker::operator();
  template <typename Row, typename List>
  void operator()(ListTag<Row>, List&) {}
};

// `event` as `Fields` has it: unpacked<StepFields, StepEvent>(event). Texts refer to the packed bytes.
template <typename Fields, typename Event>
Event unpacked(std::span<const std::byte> bytes) {
  Event out;
  Unpacker from(bytes);
  Fields::visit(out, from);
  return out;
}
// The same without lists.
template <typename Fields, typename Event>
Event unpacked_head(std::span<const std::byte> bytes) {
  Event out;
  HeadUnpacker from(bytes);
  Fields::visit(out, from);
  return out;
}

}  // namespace vitrine
