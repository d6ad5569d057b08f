#include "formats/hf_index.h"

#include <algorithm>
#include <map>

#include "formats/detail.h"
#include "formats/json_events.h"

namespace vitrine {
namespace {

using detail::JsonEvent;
using detail::quote_name;

constexpr std::size_t kMaxIndex = 64 << 20;
constexpr std::size_t kMaxFiles = 4096;

bool plain_file_name(std::string_view name) {
  return detail::printable(name) && name.size() <= 255 && name != "." && name != ".." &&
         name.find_first_of("/\\") == std::string_view::npos;
}

class IndexSink : public detail::JsonSink {
 public:
  explicit IndexSink(const std::string& name) : name_(name) {}
  bool has_map() const { return has_map_; }
  ShardIndex take() { return std::move(index_); }

  Status event(JsonEvent event, std::string_view text, std::uint64_t) override {
    bool opens = event == JsonEvent::kObject || event == JsonEvent::kArray;
    bool closes = event == JsonEvent::kObjectEnd || event == JsonEvent::kArrayEnd;
    if (depth_ == 0 && event != JsonEvent::kObject)
      return malformed("the index is not a JSON object");
    if (depth_ == 1 && event == JsonEvent::kKey) {
      in_map_ = text == "weight_map";
      if (in_map_ && has_map_) return malformed("'weight_map' appears twice");
      has_map_ = has_map_ || in_map_;
    } else if (depth_ == 1 && in_map_ && !closes && event != JsonEvent::kObject) {
      return malformed("'weight_map' is not an object");
    } else if (depth_ == 2 && in_map_ && !closes) {
      VT_RETURN_IF_ERROR(map_event(event, text));
    }
    depth_ += opens ? 1 : closes ? -1 : 0;
    return Ok{};
  }

 private:
  Error malformed(std::string_view what) const {
    return make_error(ErrorCode::kMalformed, "{}: {}", name_, what);
  }

  Status map_event(JsonEvent event, std::string_view text) {
    if (event == JsonEvent::kKey) {
      if (text.size() > detail::kMaxNameBytes || !detail::printable(text))
        return malformed(fmt::format("tensor name {} is empty, not printable or over {} bytes",
                                     quote_name(text), detail::kMaxNameBytes));
      if (index_.tensors.size() == detail::kMaxTensors)
        return make_error(ErrorCode::kTooLarge, "{}: over {} tensors", name_, detail::kMaxTensors);
      index_.tensors.emplace_back(std::string(text), 0);
      return Ok{};
    }
    std::string& tensor = index_.tensors.back().first;
    if (event != JsonEvent::kString)
      return malformed(fmt::format("tensor {}: its file is not a string", quote_name(tensor)));
    if (!plain_file_name(text))
      return malformed(fmt::format("tensor {}: {} is not a plain file name", quote_name(tensor),
                                   quote_name(text)));
    auto [it, added] = numbers_.try_emplace(std::string(text), index_.files.size());
    if (added) index_.files.emplace_back(text);
    if (index_.files.size() > kMaxFiles)
      return make_error(ErrorCode::kTooLarge, "{}: over {} files", name_, kMaxFiles);
    index_.tensors.back().second = it->second;
    return Ok{};
  }

  const std::string& name_;
  int depth_ = 0;
  bool in_map_ = false, has_map_ = false;
  std::map<std::string, std::uint32_t> numbers_;
  ShardIndex index_;
};

}  // namespace

Result<ShardIndex> parse_shard_index(std::string_view text, const std::string& name) {
  if (text.size() > kMaxIndex)
    return make_error(ErrorCode::kTooLarge, "{}: {} bytes, at most {}", name, text.size(),
                      kMaxIndex);
  IndexSink sink(name);
  VT_RETURN_IF_ERROR(detail::parse_json_events(text, name, 4096, sink));
  if (!sink.has_map())
    return make_error(ErrorCode::kMalformed, "{}: 'weight_map' is missing", name);
  ShardIndex index = sink.take();
  std::sort(index.tensors.begin(), index.tensors.end());
  auto twice = std::adjacent_find(index.tensors.begin(), index.tensors.end(),
                                  [](const auto& a, const auto& b) { return a.first == b.first; });
  if (twice != index.tensors.end())
    return make_error(ErrorCode::kMalformed, "{}: tensor {} appears twice", name,
                      quote_name(twice->first));
  return index;
}

}  // namespace vitrine
