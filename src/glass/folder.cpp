#include "glass/folder.h"

#include <fcntl.h>
#include <openssl/sha.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "glass/file_rules.h"

namespace vitrine {
namespace {

namespace fs = std::filesystem;

std::string hex_digest(std::span<const std::byte> bytes) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  std::string out;
  for (unsigned char byte : digest) out += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return out.substr(0, kEtagDigits);
}

// The file without ".gz" or ".br"; empty: it is not an encoding.
std::string_view encoded_name(std::string_view name) {
  if (!name.ends_with(".gz") && !name.ends_with(".br")) return {};
  return name.substr(0, name.size() - 3);
}

// Up to `most` bytes. Does not wait for what is not a file, such as a pipe.
Result<std::vector<std::byte>> read_file(const std::string& path, std::size_t most) {
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0)
    return make_error(ErrorCode::kUnavailable, "{}: cannot be read: {}", path,
                      std::strerror(errno));
  struct Closer {
    int file;
    ~Closer() { ::close(file); }
  } closer{file};
  struct stat about {};
  if (::fstat(file, &about) != 0 || !S_ISREG(about.st_mode))
    return make_error(ErrorCode::kInvalid, "{}: found something else than a file or a folder",
                      path);
  std::vector<std::byte> out;
  std::array<std::byte, 64 << 10> buffer;
  for (;;) {
    ssize_t count = ::read(file, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      return make_error(ErrorCode::kUnavailable, "{}: cannot be read: {}", path,
                        std::strerror(errno));
    if (count == 0) return out;
    if (out.size() + static_cast<std::size_t>(count) > most)
      return make_error(ErrorCode::kTooLarge,
                        "{}: with this file the folder has over {} bytes, the most that is served",
                        path, AssetFolder::kMaxBytes);
    out.insert(out.end(), buffer.begin(), buffer.begin() + count);
  }
}

Status check_name(const std::string& path, std::string_view name) {
  if (!is_plain_name(name))
    return make_error(ErrorCode::kInvalid,
                      "{}: the name may have letters, digits and the characters . _ - only", path);
  auto encoded = encoded_name(name);
  if (content_type(encoded.empty() ? name : encoded).empty())
    return make_error(ErrorCode::kUnsupported, "{}: the extension is none of {}; or .gz, .br", path,
                      kKnownTypes);
  return Ok{};
}

}  // namespace

Result<std::unique_ptr<AssetFolder>> AssetFolder::load(const std::string& folder) {
  std::unique_ptr<AssetFolder> out(new AssetFolder());
  VT_RETURN_IF_ERROR(out->read(folder));
  VT_RETURN_IF_ERROR(out->list_assets(folder));
  return out;
}

Status AssetFolder::read(const std::string& folder) {
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error), end;
  int entries = 0;
  std::size_t bytes = 0;
  for (; !error && entry != end; entry.increment(error)) {
    if (++entries > kMaxFiles)
      return make_error(ErrorCode::kTooLarge, "{}: the folder has over {} files and folders",
                        folder, kMaxFiles);
    if (entry->is_directory(error) && !entry->is_symlink(error)) continue;
    std::string path = entry->path().string();
    std::string name = entry->path().lexically_relative(folder).generic_string();
    auto encoded = encoded_name(name);
    if ((encoded.empty() ? std::string_view(name) : encoded).ends_with(".map")) continue;
    VT_RETURN_IF_ERROR(check_name(path, name));
    VT_TRY(auto content, read_file(path, kMaxBytes - bytes));
    bytes += content.size();
    files_.push_back({std::move(name), "", "", std::move(content)});
  }
  if (error)
    return make_error(ErrorCode::kNotFound, "{}: cannot be read as a folder: {}", folder,
                      error.message());
  std::sort(files_.begin(), files_.end(),
            [](const File& a, const File& b) { return a.name < b.name; });
  return Ok{};
}

const AssetFolder::File* AssetFolder::find(std::string_view name) const {
  auto at = std::lower_bound(files_.begin(), files_.end(), name,
                             [](const File& file, std::string_view n) { return file.name < n; });
  return at != files_.end() && at->name == name ? &*at : nullptr;
}

Status AssetFolder::list_assets(const std::string& folder) {
  for (File& file : files_) {
    if (auto encoded = encoded_name(file.name); !encoded.empty()) {
      if (find(encoded) == nullptr)
        return make_error(ErrorCode::kInvalid,
                          "{}/{}: found no {} beside it, whose encoding it would be", folder,
                          file.name, encoded);
      continue;
    }
    file.path = file.name == kPageFile ? "/" : std::string(kFolderPath) + file.name;
    file.etag = hex_digest(file.bytes);
    auto encoding = [&](const char* extension) -> std::span<const std::byte> {
      const File* found = find(file.name + extension);
      return found != nullptr ? std::span<const std::byte>(found->bytes)
                              : std::span<const std::byte>();
    };
    assets_.push_back({file.path, content_type(file.name), file.etag, has_hashed_name(file.name),
                       file.bytes, encoding(".gz"), encoding(".br")});
  }
  if (find_asset(assets_, "/") == nullptr)
    return make_error(ErrorCode::kNotFound, "{}: found no {} in this folder", folder, kPageFile);
  return Ok{};
}

}  // namespace vitrine
