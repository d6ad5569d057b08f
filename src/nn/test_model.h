// For tests: small model files, written to a temporary place and opened.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "formats/model_file.h"

namespace vitrine::test {

struct TestTensor {
  std::string name;
  std::vector<std::int64_t> shape;  // outermost first
  std::vector<float> values = {};   // empty: 0, 1, 2...
  std::string dtype = "F32";        // another: zeros of that safetensors type, four bytes each

  std::string bytes() const {
    std::int64_t n = 1;
    for (std::int64_t d : shape) n *= d;
    std::vector<float> data = values;
    for (std::int64_t i = 0; values.empty() && i < n; ++i)
      data.push_back(dtype == "F32" ? static_cast<float>(i) : 0);
    return {reinterpret_cast<const char*>(data.data()), data.size() * sizeof(float)};
  }
};

class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "vitrine_nn_XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::string file = (path_ / name).string();
    std::ofstream(file, std::ios::binary) << bytes;
    return file;
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// The file stays mapped after its folder is gone.
inline std::unique_ptr<ModelFile> open_test_model(const std::string& path) {
  auto file = ModelFile::open(path);
  EXPECT_TRUE(file.ok()) << file.error().message;
  return std::move(file).value();
}

// A Hugging Face folder.
inline std::unique_ptr<ModelFile> hf_model(const std::string& config,
                                           const std::vector<TestTensor>& tensors = {}) {
  std::string header = "{", data;
  for (const TestTensor& t : tensors) {
    std::string shape, bytes = t.bytes();
    for (std::int64_t d : t.shape) shape += fmt::format("{}{}", shape.empty() ? "" : ",", d);
    header += fmt::format(R"({}"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                          header.size() > 1 ? "," : "", t.name, t.dtype, shape, data.size(),
                          data.size() + bytes.size());
    data += bytes;
  }
  header += "}";
  header.append((8 - header.size() % 8) % 8, ' ');
  std::uint64_t length = header.size();
  std::string start(reinterpret_cast<const char*>(&length), sizeof(length));
  TempFolder folder;
  folder.write("config.json", config);
  if (!tensors.empty()) folder.write("model.safetensors", start + header + data);
  return open_test_model(folder.path());
}

// A GGUF file of architecture "test" with f32 tensors.
class GgufModel {
 public:
  GgufModel() { string("general.architecture", "test"); }
  GgufModel& u32(const std::string& key, std::uint32_t v) { return add(key, 4, number(v)); }
  GgufModel& f32(const std::string& key, float v) { return add(key, 6, number(v)); }
  GgufModel& flags(const std::string& key, const std::vector<bool>& v) {
    std::string bytes = number(std::uint32_t{7}) + number(std::uint64_t{v.size()});
    for (bool flag : v) bytes += flag ? '\1' : '\0';
    return add(key, 9, bytes);
  }
  GgufModel& string(const std::string& key, const std::string& v) { return add(key, 8, text(v)); }
  GgufModel& tensor(TestTensor t) {
    tensors_.push_back(std::move(t));
    return *this;
  }

  std::unique_ptr<ModelFile> open() const {
    std::string out = "GGUF" + number(std::uint32_t{3}) + number(std::uint64_t{tensors_.size()}) +
                      number(std::uint64_t{count_}) + keys_;
    std::string data;
    for (const TestTensor& t : tensors_) {
      out += text(t.name) + number(static_cast<std::uint32_t>(t.shape.size()));
      for (std::size_t i = t.shape.size(); i-- > 0;) out += number(t.shape[i]);
      out += number(std::uint32_t{0}) + number(std::uint64_t{data.size()});
      data += t.bytes();
      data.append((32 - data.size() % 32) % 32, '\0');
    }
    out.append((32 - out.size() % 32) % 32, '\0');
    TempFolder folder;
    return open_test_model(folder.write("model.gguf", out + data));
  }

 private:
  template <typename T>
  static std::string number(T v) {
    return {reinterpret_cast<const char*>(&v), sizeof(v)};
  }
  static std::string text(const std::string& s) { return number(std::uint64_t{s.size()}) + s; }
  GgufModel& add(const std::string& key, std::uint32_t type, const std::string& value) {
    keys_ += text(key) + number(type) + value;
    ++count_;
    return *this;
  }

  std::string keys_;
  std::size_t count_ = 0;
  std::vector<TestTensor> tensors_;
};

}  // namespace vitrine::test
