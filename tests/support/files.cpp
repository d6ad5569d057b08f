#include "support/files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>

#include "quant/format.h"

namespace vitrine::test {
namespace {

void append_bytes(Bytes& out, const void* data, std::size_t n) {
  std::size_t size = out.size();
  out.resize(size + n);
  if (n > 0) std::memcpy(out.data() + size, data, n);
}

template <typename T>
void append(Bytes& out, const T& value) {
  append_bytes(out, &value, sizeof(value));
}

void append_text(Bytes& out, std::string_view text) {
  append(out, std::uint64_t{text.size()});
  append_bytes(out, text.data(), text.size());
}

void pad(Bytes& out, std::size_t alignment) {
  out.resize((out.size() + alignment - 1) / alignment * alignment);
}

Bytes encode(const Weights& weights, DType dtype) {
  const Format* format = find_format(dtype);
  VT_CHECK(format != nullptr);
  auto n = static_cast<std::int64_t>(weights.values.size());
  VT_CHECK(weights.shape.back() % format->info.block == 0);
  Bytes out(static_cast<std::size_t>(format_bytes(format->info, n)));
  format->encode(weights.values.data(), n / format->info.block, out.data());
  return out;
}

const char* safetensors_name(DType dtype) {
  return dtype == DType::kF32 ? "F32" : dtype == DType::kF16 ? "F16" : "BF16";
}

}  // namespace

WeightMap read_weights(const ModelFile& file) {
  WeightMap out;
  for (const TensorInfo& t : file.tensors()) {
    const Format* format = find_format(t.dtype);
    VT_CHECK(format != nullptr, "{}", t.name);
    Weights& w = out[t.name];
    for (int i = 0; i < t.shape.rank(); ++i) w.shape.push_back(t.shape[i]);
    w.values.resize(static_cast<std::size_t>(t.shape.elements()));
    format->decode(t.data.data(), t.shape.elements() / format->info.block, w.values.data());
  }
  return out;
}

Weights random_weights(std::vector<std::int64_t> shape, float scale, unsigned seed, float mean) {
  std::int64_t n = 1;
  for (std::int64_t dim : shape) n *= dim;
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal(mean, scale);
  Weights w{std::move(shape), std::vector<float>(static_cast<std::size_t>(n))};
  for (float& x : w.values) x = normal(rng);
  return w;
}

Bytes safetensors_image(const WeightMap& weights, DType dtype) {
  json::object header;
  Bytes data;
  for (const auto& [name, w] : weights) {
    Bytes encoded = encode(w, dtype);
    std::size_t begin = data.size();
    data.insert(data.end(), encoded.begin(), encoded.end());
    header[name] = json::object{{"dtype", safetensors_name(dtype)},
                                {"shape", json::array(w.shape.begin(), w.shape.end())},
                                {"data_offsets", json::array{begin, data.size()}}};
  }
  Bytes out;
  append_text(out, json::serialize(header));
  out.insert(out.end(), data.begin(), data.end());
  return out;
}

GgufImage& GgufImage::put(std::string_view key, std::uint32_t type, Bytes value) {
  Bytes encoded;
  append(encoded, type);
  encoded.insert(encoded.end(), value.begin(), value.end());
  keys_[std::string(key)] = std::move(encoded);
  return *this;
}

GgufImage& GgufImage::add(std::string_view key, std::uint32_t value) {
  Bytes b;
  append(b, value);
  return put(key, 4, b);
}

GgufImage& GgufImage::add(std::string_view key, std::int64_t value) {
  Bytes b;
  append(b, value);
  return put(key, 11, b);
}

GgufImage& GgufImage::add(std::string_view key, float value) {
  Bytes b;
  append(b, value);
  return put(key, 6, b);
}

GgufImage& GgufImage::add(std::string_view key, bool value) {
  return put(key, 7, Bytes{static_cast<std::byte>(value)});
}

GgufImage& GgufImage::add(std::string_view key, std::string_view value) {
  Bytes b;
  append_text(b, value);
  return put(key, 8, b);
}

GgufImage& GgufImage::remove(std::string_view key) {
  auto at = keys_.find(key);
  VT_CHECK(at != keys_.end(), "{}", key);
  keys_.erase(at);
  return *this;
}

GgufImage& GgufImage::tensor(const std::string& name, const Weights& weights, DType dtype) {
  tensors_[name] = {weights.shape, dtype, encode(weights, dtype)};
  return *this;
}

Bytes GgufImage::build() const {
  constexpr std::size_t kAlignment = 32;
  Bytes out;
  append_bytes(out, "GGUF", 4);
  append(out, std::uint32_t{3});
  append(out, std::uint64_t{tensors_.size()});
  append(out, std::uint64_t{keys_.size()});
  for (const auto& [key, value] : keys_) {
    append_text(out, key);
    out.insert(out.end(), value.begin(), value.end());
  }
  std::uint64_t offset = 0;
  for (const auto& [name, t] : tensors_) {
    append_text(out, name);
    append(out, static_cast<std::uint32_t>(t.shape.size()));
    for (auto dim = t.shape.rbegin(); dim != t.shape.rend(); ++dim)
      append(out, static_cast<std::uint64_t>(*dim));
    append(out, static_cast<std::uint32_t>(t.dtype));
    append(out, offset);
    offset += (t.data.size() + kAlignment - 1) / kAlignment * kAlignment;
  }
  for (const auto& [name, t] : tensors_) {
    pad(out, kAlignment);
    out.insert(out.end(), t.data.begin(), t.data.end());
  }
  pad(out, kAlignment);
  return out;
}

TempFolder::TempFolder() {
  static std::atomic<int> number{0};
  folder_ = std::filesystem::temp_directory_path() /
            fmt::format("vitrine_test_{}_{}", ::getpid(), number++);
  std::filesystem::create_directories(folder_);
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string TempFolder::path(std::string_view name) const {
  return name.empty() ? folder_.string() : (folder_ / name).string();
}

void TempFolder::write(std::string_view name, std::string_view text) const {
  std::ofstream(path(name), std::ios::binary) << text;
}

void TempFolder::write(std::string_view name, const Bytes& bytes) const {
  write(name, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

void TempFolder::copy_from(const std::string& folder) const {
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    write(entry.path().filename().string(), read_text(entry.path().string()));
}

json::object TempFolder::read_json(std::string_view name) const {
  return json::parse(read_text(path(name))).as_object();
}

void TempFolder::write_json(std::string_view name, const json::value& value) const {
  write(name, json::serialize(value));
}

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  VT_CHECK(in.good(), "{}", path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace vitrine::test
