// A file's bytes, mapped read-only for the object's lifetime. If another process truncates the file
// meanwhile, a read beyond its new end terminates this process with a message that names the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace vitrine {

// What happened to a file after it was mapped.
struct FileChange {
  std::string path;
  // Another file has its name now, or none has. The mapping still holds the old one.
  bool replaced = false;
  std::string what;  // "had 5 bytes of 2026-01-01T00:00:00Z, has 6 of ..."
};

class MappedFile {
 public:
  // Maps a regular file. An empty file maps to an empty span.
  static Result<MappedFile> open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  const std::string& path() const { return path_; }
  // By the file's size, time and inode now; nothing when they are as they were.
  std::optional<FileChange> change() const;

 private:
  struct Identity {
    std::uint64_t device = 0, inode = 0;
    std::int64_t seconds = 0, nanoseconds = 0;  // when it was written
  };
  MappedFile(std::string path, Identity identity, const std::byte* data, std::size_t size)
      : path_(std::move(path)), identity_(identity), data_(data), size_(size) {}
  std::string path_;
  Identity identity_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace vitrine
