#include "cli/logits_file.h"

#include <array>
#include <cstring>

namespace vitrine {
namespace {

constexpr std::string_view kMagic = "VTLOGITS";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeaderBytes = 32;
constexpr std::uint32_t kMostVocab = 1 << 24;
constexpr std::uint32_t kMostTokens = 1 << 20;  // of a window

}  // namespace

bool LogitsFile::recognises(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::array<char, kMagic.size()> begin{};
  in.read(begin.data(), begin.size());
  return in && std::string_view(begin.data(), begin.size()) == kMagic;
}

Result<LogitsFile> LogitsFile::open(const std::string& path) {
  VT_TRY(MappedFile mapped, MappedFile::open(path));
  LogitsFile out(std::move(mapped));
  const std::string_view bytes = out.file_.text();
  auto word = [&](std::size_t at) {
    std::uint32_t value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
  };
  auto malformed = [&](const std::string& what) {
    return make_error(ErrorCode::kMalformed, "{}: {}", path, what);
  };
  if (bytes.size() < kHeaderBytes || !bytes.starts_with(kMagic))
    return malformed("is no file of logits: it does not begin with VTLOGITS and a header");
  if (word(8) != kVersion)
    return malformed(fmt::format("version {} of a file of logits; {} is known", word(8), kVersion));
  const std::uint32_t vocab = word(12), windows = word(16);
  if (vocab == 0 || vocab > kMostVocab)
    return malformed(fmt::format("a vocabulary of {}; 1 to {} are allowed", vocab, kMostVocab));
  std::memcpy(&out.text_bytes_, bytes.data() + 24, sizeof out.text_bytes_);
  out.vocab_ = static_cast<int>(vocab);
  std::size_t at = kHeaderBytes;
  for (std::uint32_t w = 0; w < windows; ++w) {
    if (bytes.size() - at < 4)
      return malformed(fmt::format("ends before window {} of {}", w, windows));
    const std::size_t n = word(at);
    if (n < 2 || n > kMostTokens)
      return malformed(
          fmt::format("window {} has {} tokens; 2 to {} are allowed", w, n, kMostTokens));
    const std::size_t size = 4 * (1 + n + (n - 1) * vocab);
    if (bytes.size() - at < size)
      return malformed(
          fmt::format("window {} needs {} bytes, {} are left", w, size, bytes.size() - at));
    const auto* ids = reinterpret_cast<const std::int32_t*>(bytes.data() + at + 4);
    for (std::size_t t = 0; t < n; ++t)
      if (ids[t] < 0 || ids[t] >= out.vocab_)
        return malformed(
            fmt::format("window {}, token {} is {}; the vocabulary has {}", w, t, ids[t], vocab));
    out.windows_.push_back({{ids, n}, reinterpret_cast<const float*>(ids + n)});
    at += size;
  }
  if (at != bytes.size())
    return malformed(
        fmt::format("{} bytes follow the last of {} windows", bytes.size() - at, windows));
  if (windows == 0) return malformed("has no windows");
  return out;
}

Result<LogitsWriter> LogitsWriter::create(const std::string& path, int vocab, std::size_t windows,
                                          std::int64_t positions, std::int64_t text_bytes) {
  if (positions > kMostBytes / (4 * static_cast<std::int64_t>(vocab)))
    return make_error(
        ErrorCode::kTooLarge,
        "{}: {} positions of {} logits are more than {} GiB; use fewer tokens (--limit)", path,
        positions, vocab, kMostBytes >> 30);
  LogitsWriter out(path, std::ofstream(path, std::ios::binary | std::ios::trunc));
  if (!out.out_) return make_error(ErrorCode::kUnavailable, "{}: cannot be written", path);
  out.out_.write(kMagic.data(), kMagic.size());
  out.put(kVersion);
  out.put(static_cast<std::uint32_t>(vocab));
  out.put(static_cast<std::uint32_t>(windows));
  out.put(std::uint32_t{0});
  out.put(text_bytes);
  return out;
}

void LogitsWriter::begin_window(std::span<const std::int32_t> tokens) {
  put(static_cast<std::uint32_t>(tokens.size()));
  out_.write(reinterpret_cast<const char*>(tokens.data()),
             static_cast<std::streamsize>(tokens.size_bytes()));
}

void LogitsWriter::add_row(std::span<const float> logits) {
  out_.write(reinterpret_cast<const char*>(logits.data()),
             static_cast<std::streamsize>(logits.size_bytes()));
}

Status LogitsWriter::finish() {
  out_.close();
  if (!out_) return make_error(ErrorCode::kUnavailable, "{}: could not be written whole", path_);
  return Ok{};
}

}  // namespace vitrine
