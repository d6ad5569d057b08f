#include "formats/safetensors.h"

#include <algorithm>
#include <limits>
#include <set>

#include "formats/detail.h"
#include "formats/json_events.h"
#include "formats/storage.h"

namespace vitrine {
namespace {

using detail::JsonEvent;
using detail::quote_name;

constexpr std::uint64_t kMaxHeader = 100'000'000;
// Values of __metadata__ may be long (training settings); they are skipped, not stored.
constexpr std::size_t kMaxText = 1 << 20;

struct Entry {
  TensorInfo info;
  std::uint64_t begin = 0, end = 0;
};

class HeaderSink : public detail::JsonSink {
 public:
  explicit HeaderSink(const std::string& name) : name_(name) {}
  std::vector<Entry> take() { return std::move(entries_); }

  Status event(JsonEvent event, std::string_view text, std::uint64_t number) override {
    switch (state_) {
      case State::kStart:
        return start(event);
      case State::kTop:
        return top(event, text);
      case State::kMetadataValue:
        return metadata_value(event);
      case State::kMetadata:
        return metadata(event, text);
      case State::kTensorValue:
        return open_tensor(event);
      case State::kTensor:
        return tensor_field(event, text);
      case State::kField:
        return field_value(event, text);
      case State::kList:
        return list_item(event, number);
      case State::kEnd:
        break;
    }
    return malformed("text after the header");
  }

 private:
  enum class State {
    kStart,          // before the document
    kTop,            // in the document, at a tensor's name
    kTensorValue,    // after a tensor's name
    kTensor,         // in a tensor, at a field's name
    kField,          // after a field's name
    kList,           // in shape or data_offsets
    kMetadataValue,  // after "__metadata__"
    kMetadata,       // in it
    kEnd,
  };
  enum Field : unsigned { kDtype = 1, kShape = 2, kOffsets = 4 };

  template <typename... Args>
  Error malformed(fmt::format_string<Args...> format, Args&&... args) const {
    return {ErrorCode::kMalformed, name_ + ": " + fmt::format(format, std::forward<Args>(args)...)};
  }
  template <typename... Args>
  Error bad_tensor(fmt::format_string<Args...> format, Args&&... args) const {
    return malformed("tensor {}: {}", quote_name(entry_.info.name),
                     fmt::format(format, std::forward<Args>(args)...));
  }

  Status start(JsonEvent event) {
    if (event != JsonEvent::kObject) return malformed("the header is not a JSON object");
    state_ = State::kTop;
    return Ok{};
  }

  Status top(JsonEvent event, std::string_view text) {
    if (event == JsonEvent::kObjectEnd) {
      state_ = State::kEnd;
      return Ok{};
    }
    if (text == "__metadata__") {
      if (metadata_seen_) return malformed("'__metadata__' appears twice");
      metadata_seen_ = true;
      state_ = State::kMetadataValue;
      return Ok{};
    }
    if (text.size() > detail::kMaxNameBytes)
      return make_error(ErrorCode::kTooLarge, "{}: tensor name {} has {} bytes, at most {}", name_,
                        quote_name(text), text.size(), detail::kMaxNameBytes);
    if (!detail::printable(text))
      return malformed("tensor name {} is empty or not printable", quote_name(text));
    if (entries_.size() == detail::kMaxTensors)
      return make_error(ErrorCode::kTooLarge, "{}: over {} tensors", name_, detail::kMaxTensors);
    entry_ = Entry{};
    entry_.info.name = text;
    fields_ = 0;
    state_ = State::kTensorValue;
    return Ok{};
  }

  Status metadata_value(JsonEvent event) {
    if (event != JsonEvent::kObject) return malformed("'__metadata__' is not an object");
    state_ = State::kMetadata;
    return Ok{};
  }

  Status metadata(JsonEvent event, std::string_view text) {
    if (event == JsonEvent::kObjectEnd) {
      state_ = State::kTop;
      metadata_keys_.clear();
    } else if (event == JsonEvent::kKey) {
      if (text.size() > detail::kMaxKeyBytes || metadata_keys_.size() == detail::kMaxKeys)
        return make_error(ErrorCode::kTooLarge,
                          "{}: '__metadata__' has over {} keys or one of over {} bytes", name_,
                          detail::kMaxKeys, detail::kMaxKeyBytes);
      if (!metadata_keys_.emplace(text).second)
        return malformed("'__metadata__': key {} appears twice", quote_name(text));
      metadata_key_ = text;
    } else if (event != JsonEvent::kString) {
      return malformed("'__metadata__': the value of key {} is not a string",
                       quote_name(metadata_key_));
    }
    return Ok{};
  }

  Status open_tensor(JsonEvent event) {
    if (event != JsonEvent::kObject) return bad_tensor("its entry is not an object");
    state_ = State::kTensor;
    return Ok{};
  }

  Status tensor_field(JsonEvent event, std::string_view text) {
    if (event == JsonEvent::kObjectEnd) return close_tensor();
    field_ = text == "dtype" ? kDtype : text == "shape" ? kShape : kOffsets;
    if (field_ == kOffsets && text != "data_offsets")
      return bad_tensor("unknown field {}; wanted dtype, shape and data_offsets", quote_name(text));
    if (fields_ & field_) return bad_tensor("field {} appears twice", quote_name(text));
    fields_ |= field_;
    state_ = State::kField;
    return Ok{};
  }

  Status field_value(JsonEvent event, std::string_view text) {
    if (field_ == kDtype) {
      if (event != JsonEvent::kString) return bad_tensor("dtype is not a string");
      type_ = find_safetensors_type(text);
      if (type_ == nullptr)
        return make_error(ErrorCode::kUnsupported, "{}: tensor {}: unknown dtype {}", name_,
                          quote_name(entry_.info.name), quote_name(text));
      entry_.info.dtype = type_->dtype;
      state_ = State::kTensor;
      return Ok{};
    }
    if (event != JsonEvent::kArray)
      return bad_tensor("{} is not an array", field_ == kShape ? "shape" : "data_offsets");
    items_ = 0;
    state_ = State::kList;
    return Ok{};
  }

  Status list_item(JsonEvent event, std::uint64_t number) {
    if (event == JsonEvent::kArrayEnd) {
      if (field_ == kOffsets && items_ != 2)
        return bad_tensor("data_offsets has {} numbers, wanted 2", items_);
      state_ = State::kTensor;
      return Ok{};
    }
    const char* field = field_ == kShape ? "shape" : "data_offsets";
    if (event != JsonEvent::kUnsigned || number > std::numeric_limits<std::int64_t>::max())
      return bad_tensor("{} holds something other than integers from 0 to 2^63-1", field);
    if (field_ == kShape) {
      if (items_ == Shape::kMaxRank)
        return make_error(ErrorCode::kUnsupported, "{}: tensor {}: over {} dimensions", name_,
                          quote_name(entry_.info.name), Shape::kMaxRank);
      entry_.info.shape.push_back(static_cast<std::int64_t>(number));
    } else {
      if (items_ == 2) return bad_tensor("data_offsets has over 2 numbers");
      (items_ == 0 ? entry_.begin : entry_.end) = number;
    }
    ++items_;
    return Ok{};
  }

  Status close_tensor() {
    if (fields_ != (kDtype | kShape | kOffsets))
      return bad_tensor("dtype, shape or data_offsets is missing");
    const Shape& shape = entry_.info.shape;
    std::int64_t bytes = type_->bytes;
    bool empty = false;
    // Zeros are left out of the product, so that multiplying any subset of the dimensions cannot
    // overflow.
    for (int i = 0; i < shape.rank(); ++i) {
      empty = empty || shape[i] == 0;
      if (shape[i] != 0 && __builtin_mul_overflow(bytes, shape[i], &bytes))
        return bad_tensor("the size of shape {} passes 2^63 bytes", shape.to_string());
    }
    if (empty) bytes = 0;
    if (entry_.begin > entry_.end || entry_.end - entry_.begin != static_cast<std::uint64_t>(bytes))
      return bad_tensor("data_offsets [{}, {}] are not the {} bytes of shape {} and dtype {}",
                        entry_.begin, entry_.end, bytes, shape.to_string(), type_->name);
    entries_.push_back(std::move(entry_));
    state_ = State::kTop;
    return Ok{};
  }

  const std::string& name_;
  State state_ = State::kStart;
  Field field_ = kDtype;
  unsigned fields_ = 0;
  int items_ = 0;
  bool metadata_seen_ = false;
  std::string metadata_key_;
  std::set<std::string, std::less<>> metadata_keys_;
  const StorageType* type_ = nullptr;
  Entry entry_;
  std::vector<Entry> entries_;
};

Status check_unique(const std::vector<Entry>& entries, const std::string& name) {
  std::vector<std::string_view> names;
  names.reserve(entries.size());
  for (const Entry& e : entries) names.emplace_back(e.info.name);
  std::sort(names.begin(), names.end());
  auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    return make_error(ErrorCode::kMalformed, "{}: tensor {} appears twice", name,
                      quote_name(*twice));
  return Ok{};
}

}  // namespace

Result<std::vector<TensorInfo>> parse_safetensors(std::span<const std::byte> bytes,
                                                  const std::string& name) {
  auto malformed = [&](std::string what) {
    return Error{ErrorCode::kMalformed, name + ": " + std::move(what)};
  };
  detail::ByteReader reader(bytes);
  std::uint64_t length = 0;
  if (!reader.read(length))
    return malformed(fmt::format("{} bytes are too few for safetensors", bytes.size()));
  if (length > kMaxHeader)
    return make_error(ErrorCode::kTooLarge, "{}: a header of {} bytes, at most {}", name, length,
                      kMaxHeader);
  if (length > reader.remaining())
    return malformed(fmt::format("a header of {} bytes in a file of {}", length, bytes.size()));
  std::string_view header(reinterpret_cast<const char*>(reader.here()), length);
  if (!header.starts_with('{')) return malformed("the header does not start with '{'");
  std::size_t last = header.find_last_not_of(' ');  // npos: a mapped file may change meanwhile
  if (last == header.npos || header[last] != '}')
    return malformed("the header does not end with '}' and spaces");

  HeaderSink sink(name);
  VT_RETURN_IF_ERROR(detail::parse_json_events(header, name, kMaxText, sink));
  std::vector<Entry> entries = sink.take();
  VT_RETURN_IF_ERROR(check_unique(entries, name));
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });

  auto data = bytes.subspan(8 + static_cast<std::size_t>(length));
  std::vector<TensorInfo> tensors;
  tensors.reserve(entries.size());
  std::uint64_t covered = 0;
  for (Entry& e : entries) {
    if (e.begin != covered)
      return malformed(fmt::format(
          "tensor {} starts at byte {} of the data, {} at {}", quote_name(e.info.name), e.begin,
          e.begin > covered ? "leaving a hole" : "overlapping another", covered));
    if (e.end > data.size())
      return malformed(fmt::format("tensor {} ends at byte {} of the data, which has {}",
                                   quote_name(e.info.name), e.end, data.size()));
    e.info.data =
        data.subspan(static_cast<std::size_t>(e.begin), static_cast<std::size_t>(e.end - e.begin));
    covered = e.end;
    tensors.push_back(std::move(e.info));
  }
  if (covered != data.size())
    return malformed(fmt::format("{} bytes after the last tensor{}", data.size() - covered,
                                 tensors.empty() ? "" : " " + quote_name(tensors.back().name)));
  return tensors;
}

}  // namespace vitrine
