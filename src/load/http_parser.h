// The two formats a streamed answer comes in, read a piece at a time: an HTTP/1.1 response, and the
// server-sent events in its body. Where the pieces are cut makes no difference. Bytes from a server
// are not trusted: what breaks the format is reported, and no buffer grows without a bound.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vitrine::load {

class ResponseParser {
 public:
  // Appends to `body` the part of it that `bytes` holds. False: not an HTTP response; do not feed
  // it further.
  bool feed(std::string_view bytes, std::string& body);
  // The connection was closed. True when the response is whole.
  bool close();

  bool done() const { return state_ == State::kDone; }
  int status() const { return status_; }  // 0 before the head is complete
  // Whether another request may follow on the connection, once done().
  bool keep_alive() const { return keep_alive_; }

 private:
  enum class State {
    kHead,
    kLength,
    kChunkSize,
    kChunkData,
    kChunkEnd,
    kTrailer,
    kUntilClose,
    kDone,
    kBad
  };
  bool take_line(std::string_view& bytes);
  bool parse_head();
  bool parse_status_line(std::string_view line);
  bool parse_header(std::string_view line);
  State parse_chunk_size();

  State state_ = State::kHead;
  std::string line_;  // being collected: the whole head, or one line of the chunked form
  int status_ = 0;
  bool keep_alive_ = true, chunked_ = false, has_length_ = false;
  std::uint64_t left_ = 0;  // bytes of the body or of the chunk
};

class SseParser {
 public:
  // Calls on_event(std::string_view data) for each event that `bytes` completes.
  template <typename F>
  void feed(std::string_view bytes, F&& on_event) {
    for (char c : bytes)
      if (take(c)) {
        on_event(std::string_view(data_));
        data_.clear();
        has_data_ = false;
      }
  }
  // An event has begun and was not ended by an empty line.
  bool partial() const { return !line_.empty() || has_data_; }
  // A line over the limit was cut.
  bool overflow() const { return overflow_; }

 private:
  bool take(char c);  // true: an event is complete in data_
  bool end_line();

  std::string line_, data_;
  bool has_data_ = false, after_cr_ = false, overflow_ = false;
};

}  // namespace vitrine::load
