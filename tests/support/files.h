// Model files made by tests: tensors as floats, written as safetensors or as a GGUF image.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "formats/model_file.h"
#include "tensor/dtype.h"

namespace vitrine::test {

using Bytes = std::vector<std::byte>;

struct Weights {
  std::vector<std::int64_t> shape;  // outermost first
  std::vector<float> values;
};
using WeightMap = std::map<std::string, Weights>;

// Every tensor of the file, decoded.
WeightMap read_weights(const ModelFile& file);
// `shape` filled with normal numbers times `scale`, plus `mean`.
Weights random_weights(std::vector<std::int64_t> shape, float scale, unsigned seed, float mean = 0);

// F32, F16 and BF16 only.
Bytes safetensors_image(const WeightMap& weights, DType dtype);

// A GGUF file with whatever keys and tensors.
class GgufImage {
 public:
  GgufImage& add(std::string_view key, std::uint32_t value);
  GgufImage& add(std::string_view key, std::int64_t value);
  GgufImage& add(std::string_view key, float value);
  GgufImage& add(std::string_view key, bool value);
  GgufImage& add(std::string_view key, std::string_view value);
  GgufImage& add(std::string_view key, const char* value) {
    return add(key, std::string_view(value));
  }
  // Drops a key that was added before.
  GgufImage& remove(std::string_view key);
  GgufImage& tensor(const std::string& name, const Weights& weights, DType dtype);
  Bytes build() const;

 private:
  struct Tensor {
    std::vector<std::int64_t> shape;
    DType dtype;
    Bytes data;
  };
  GgufImage& put(std::string_view key, std::uint32_t type, Bytes value);

  std::map<std::string, Bytes, std::less<>> keys_;  // type and value
  std::map<std::string, Tensor> tensors_;
};

class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  std::string path(std::string_view name = "") const;
  void write(std::string_view name, std::string_view text) const;
  void write(std::string_view name, const Bytes& bytes) const;
  // Copies every file of the folder into this one.
  void copy_from(const std::string& folder) const;
  json::object read_json(std::string_view name) const;
  void write_json(std::string_view name, const json::value& value) const;

 private:
  std::filesystem::path folder_;
};

std::string read_text(const std::string& path);

}  // namespace vitrine::test
