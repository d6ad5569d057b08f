#include "formats/model_file.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "formats/detail.h"
#include "formats/gguf.h"
#include "formats/hf.h"

namespace vitrine {

Result<std::unique_ptr<ModelFile>> ModelFile::open(const std::string& path) {
  if (path.find('\0') != std::string::npos)
    return make_error(ErrorCode::kInvalid, "a model path with a NUL byte is not allowed");
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return HfLoader::open_folder(path);
  if (path.ends_with(".json")) return HfLoader::open_tokenizer(path);
  if (path.ends_with(".gguf")) return GgufLoader::open(path);
  VT_TRY(MappedFile file, MappedFile::open(path));
  if (file.text().starts_with("GGUF")) return GgufLoader::open(path);
  return make_error(ErrorCode::kUnsupported,
                    "{}: not a GGUF file, a folder with a model, or a tokenizer.json", path);
}

Result<std::unique_ptr<ModelFile>> ModelFile::open_gguf(std::span<const std::byte> bytes,
                                                        const std::string& name) {
  return GgufLoader::open(bytes, name);
}

const TensorInfo* ModelFile::find(std::string_view name) const {
  auto it = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [this](std::uint32_t i, std::string_view wanted) { return tensors_[i].name < wanted; });
  return it != by_name_.end() && tensors_[*it].name == name ? &tensors_[*it] : nullptr;
}

Status ModelFile::build_index() {
  by_name_.resize(tensors_.size());
  std::iota(by_name_.begin(), by_name_.end(), 0U);
  std::sort(by_name_.begin(), by_name_.end(), [this](std::uint32_t a, std::uint32_t b) {
    return tensors_[a].name < tensors_[b].name;
  });
  for (std::size_t i = 1; i < by_name_.size(); ++i) {
    const std::string& name = tensors_[by_name_[i]].name;
    if (name == tensors_[by_name_[i - 1]].name)
      return make_error(ErrorCode::kMalformed, "{}: tensor {} appears twice", path_,
                        detail::quote_name(name));
  }
  return Ok{};
}

std::vector<FileChange> ModelFile::changes() const {
  std::vector<FileChange> out;
  for (const MappedFile& file : files_)
    if (auto change = file.change()) out.push_back(std::move(*change));
  return out;
}

}  // namespace vitrine
