#include "formats/hf.h"

#include <algorithm>
#include <filesystem>

#include "formats/detail.h"
#include "formats/generation.h"
#include "formats/hf_config.h"
#include "formats/hf_index.h"
#include "formats/safetensors.h"

namespace vitrine {
namespace {

using detail::quote_name;

constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

}  // namespace

Result<std::unique_ptr<ModelFile>> HfLoader::open_folder(const std::string& path) {
  HfLoader loader(path);
  VT_RETURN_IF_ERROR(loader.load());
  return std::move(loader.model_);
}

Result<std::unique_ptr<ModelFile>> HfLoader::open_tokenizer(const std::string& path) {
  HfLoader loader("");
  ModelFile& model = *loader.model_;
  model.kind_ = FileKind::kHuggingFace;
  model.path_ = path;
  VT_TRY(MappedFile file, MappedFile::open(path));
  model.files_.push_back(std::move(file));
  model.tokenizer_json_ = model.files_.back().text();
  return std::move(loader.model_);
}

std::string HfLoader::path_of(std::string_view name) const {
  return (std::filesystem::path(folder_) / name).string();
}

Result<std::string_view> HfLoader::map_text(const char* name) {
  auto file = MappedFile::open(path_of(name));
  if (!file.ok() && file.error().code == ErrorCode::kNotFound) return std::string_view();
  if (!file.ok()) return file.error();
  if (file->bytes().empty())
    return make_error(ErrorCode::kMalformed, "{}: the file is empty", path_of(name));
  model_->files_.push_back(std::move(*file));
  return model_->files_.back().text();
}

Status HfLoader::load() {
  model_->kind_ = FileKind::kHuggingFace;
  model_->path_ = folder_;
  VT_RETURN_IF_ERROR(load_config());
  VT_TRY(model_->tokenizer_json_, map_text("tokenizer.json"));
  VT_TRY(model_->tokenizer_config_json_, map_text("tokenizer_config.json"));
  VT_TRY(model_->chat_template_jinja_, map_text("chat_template.jinja"));
  VT_RETURN_IF_ERROR(load_weights());
  if (model_->files_.empty())
    return make_error(ErrorCode::kNotFound,
                      "{}: no config.json, {}, {} or tokenizer.json in the folder", folder_,
                      kSingle, kIndex);
  return model_->build_index();
}

Status HfLoader::load_config() {
  VT_TRY(std::string_view config, map_text("config.json"));
  if (!config.empty()) {
    VT_TRY(model_->meta_, parse_hf_config(config, path_of("config.json"), model_->texts_));
  }
  if (model_->meta_.has("architectures")) {
    VT_TRY(auto names, model_->meta_.get_strings("architectures"));
    if (!names.empty()) model_->architecture_ = names[0];
  } else if (model_->meta_.has("architectures.0") || model_->meta_.has("architectures.1")) {
    return make_error(ErrorCode::kMalformed, "{}: key 'architectures' is not a list of strings",
                      path_of("config.json"));
  }
  VT_TRY(std::string_view text, map_text("generation_config.json"));
  Meta generation;
  if (!text.empty()) {
    VT_TRY(generation, parse_hf_config(text, path_of("generation_config.json"), model_->texts_));
  }
  VT_TRY(model_->generation_, generation_from_hf(generation, model_->meta_));
  // Models made for embeddings (sentence-transformers' layout).
  constexpr const char* kPooling = "1_Pooling/config.json";
  VT_TRY(std::string_view pooling, map_text(kPooling));
  if (!pooling.empty()) {
    VT_TRY(Meta meta, parse_hf_config(pooling, path_of(kPooling), model_->texts_));
    VT_TRY(model_->generation_.pooling, pooling_from_hf(meta));
  }
  return Ok{};
}

Status HfLoader::load_weights() {
  auto single = MappedFile::open(path_of(kSingle));
  if (single.ok()) {
    VT_TRY(model_->tensors_, parse_safetensors(single->bytes(), path_of(kSingle)));
    model_->files_.push_back(std::move(*single));
    return Ok{};
  }
  if (single.error().code != ErrorCode::kNotFound) return single.error();
  auto index = MappedFile::open(path_of(kIndex));
  if (index.ok()) return load_shards(*index);
  if (index.error().code != ErrorCode::kNotFound) return index.error();
  for (const char* pickle : {"pytorch_model.bin", "pytorch_model.bin.index.json"})
    if (exists(path_of(pickle)))
      return make_error(ErrorCode::kUnsupported,
                        "{}: PyTorch pickle files are not read; convert the model to safetensors",
                        path_of(pickle));
  return Ok{};
}

Status HfLoader::load_shards(const MappedFile& file) {
  VT_TRY(ShardIndex index, parse_shard_index(file.text(), file.path()));
  std::vector<TensorInfo>& tensors = model_->tensors_;
  std::vector<std::uint32_t> shard_of;  // of each of `tensors`
  for (std::uint32_t shard = 0; shard < index.files.size(); ++shard) {
    std::string path = path_of(index.files[shard]);
    VT_TRY(MappedFile mapped, MappedFile::open(path));
    VT_TRY(std::vector<TensorInfo> found, parse_safetensors(mapped.bytes(), path));
    if (tensors.size() + found.size() > detail::kMaxTensors)
      return make_error(ErrorCode::kTooLarge, "{}: the shards have over {} tensors", path,
                        detail::kMaxTensors);
    model_->files_.push_back(std::move(mapped));
    std::move(found.begin(), found.end(), std::back_inserter(tensors));
    shard_of.resize(tensors.size(), shard);
  }
  VT_RETURN_IF_ERROR(model_->build_index());
  for (const auto& [name, shard] : index.tensors) {
    const TensorInfo* info = model_->find(name);
    if (info == nullptr || shard_of[info - tensors.data()] != shard)
      return make_error(ErrorCode::kMalformed, "{}: tensor {} is not in {}", file.path(),
                        quote_name(name), quote_name(index.files[shard]));
  }
  return Ok{};
}

}  // namespace vitrine
