// GGUF v2 and v3, little endian.
//   "GGUF" | u32 version | u64 tensors | u64 keys | keys | tensor infos | padding | data
// Offsets of tensors count from the data section, which starts at a multiple of general.alignment.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/meta.h"
#include "formats/model_file.h"

namespace vitrine {

// One file of a model, as views of its bytes.
struct GgufImage {
  Meta meta;
  std::vector<TensorInfo> tensors;
};

// Checks everything except that names are unique over several files. `name` appears in errors.
Result<GgufImage> parse_gguf(std::span<const std::byte> bytes, const std::string& name);

class GgufLoader {
 public:
  // `path` is a whole model or any one file of a split.
  static Result<std::unique_ptr<ModelFile>> open(const std::string& path);
  static Result<std::unique_ptr<ModelFile>> open(std::span<const std::byte> bytes,
                                                 const std::string& name);

 private:
  static Status open_split(const std::string& path, MappedFile first, GgufImage image,
                           std::int64_t count, ModelFile& model);
  static Status finish(Meta meta, ModelFile& model);
};

}  // namespace vitrine
