// JSON as a stream of events, for documents that must not be held as a tree: a hostile header then
// costs no more memory than the receiver chooses to keep.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace vitrine::detail {

enum class JsonEvent {
  kObject,
  kObjectEnd,
  kArray,
  kArrayEnd,
  kKey,       // text
  kString,    // text
  kUnsigned,  // number
  kNumber,    // any other number
  kBool,
  kNull,
};

class JsonSink {
 public:
  virtual ~JsonSink() = default;
  // `text` is valid during the call. An error ends the parse and is what the parse returns.
  virtual Status event(JsonEvent event, std::string_view text, std::uint64_t number) = 0;
};

// One document with nothing but white space after it; `what` names it in errors. Keys and strings
// longer than `max_text` are refused. Text that is not UTF-8, comments and NaN are not JSON.
Status parse_json_events(std::string_view text, std::string_view what, std::size_t max_text,
                         JsonSink& sink);

}  // namespace vitrine::detail
