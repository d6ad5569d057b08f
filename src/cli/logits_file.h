// A model's logits over a text, kept in a file, so that other runs, models and engines can be held
// against them.
//
// Little-endian, of 32-bit words but for the magic and the text's size:
//   "VTLOGITS", version (1), vocabulary, windows, 0, bytes of the text (64 bits)
//   per window: tokens n, their ids [n], logits f32 [n - 1][vocabulary] (of position t: what
//   follows token t)
#pragma once

#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"

namespace vitrine {

class LogitsFile {
 public:
  struct Window {
    std::span<const std::int32_t> tokens;
    const float* logits;  // [tokens - 1][vocab]
  };

  // Whether the file begins as one of these.
  static bool recognises(const std::string& path);
  // Checks every size and id; the logits are as they are.
  static Result<LogitsFile> open(const std::string& path);

  int vocab() const { return vocab_; }
  std::int64_t text_bytes() const { return text_bytes_; }
  const std::vector<Window>& windows() const { return windows_; }
  std::span<const float> row(std::size_t window, std::size_t position) const {
    auto width = static_cast<std::size_t>(vocab_);
    return {windows_[window].logits + position * width, width};
  }

 private:
  explicit LogitsFile(MappedFile file) : file_(std::move(file)) {}
  MappedFile file_;
  int vocab_ = 0;
  std::int64_t text_bytes_ = 0;
  std::vector<Window> windows_;
};

// Writes one, window by window. A file that was not finished is refused by LogitsFile.
class LogitsWriter {
 public:
  static constexpr std::int64_t kMostBytes = std::int64_t{64} << 30;

  // kTooLarge when `positions` of all windows would not fit kMostBytes.
  static Result<LogitsWriter> create(const std::string& path, int vocab, std::size_t windows,
                                     std::int64_t positions, std::int64_t text_bytes);
  void begin_window(std::span<const std::int32_t> tokens);
  void add_row(std::span<const float> logits);
  // kUnavailable when a write failed.
  Status finish();

 private:
  LogitsWriter(std::string path, std::ofstream out)
      : path_(std::move(path)), out_(std::move(out)) {}
  template <typename T>
  void put(const T& value) {
    out_.write(reinterpret_cast<const char*>(&value), sizeof value);
  }
  std::string path_;
  std::ofstream out_;
};

}  // namespace vitrine
