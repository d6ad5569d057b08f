// One GGUF image, or the files of a split, into a ModelFile.
#include <filesystem>

#include "formats/detail.h"
#include "formats/generation.h"
#include "formats/gguf.h"

namespace vitrine {
namespace {

using detail::quote_name;

constexpr std::int64_t kMaxShards = 65535;  // split.count is a 16-bit number

// "prefix-00002-of-00003.gguf"
std::string shard_name(std::string_view prefix, std::int64_t number, std::int64_t count) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", prefix, number, count);
}

// The prefix of a split's file name with these numbers; nothing when the name has another form.
std::optional<std::string> split_prefix(const std::string& path, std::int64_t number,
                                        std::int64_t count) {
  std::string suffix = shard_name("", number, count);
  if (path.size() < suffix.size() || !path.ends_with(suffix)) return std::nullopt;
  return path.substr(0, path.size() - suffix.size());
}

// 1 for a model in one file.
Result<std::int64_t> split_count(const Meta& meta, const std::string& name) {
  VT_TRY(std::int64_t count, meta.get_int("split.count", 1));
  if (count < 1 || count > kMaxShards)
    return make_error(ErrorCode::kMalformed, "{}: metadata key 'split.count' is {}, wanted 1 to {}",
                      name, count, kMaxShards);
  return count;
}

Status check_shard(const GgufImage& image, const std::string& name, std::int64_t number,
                   std::int64_t count) {
  VT_TRY(std::int64_t found_count, image.meta.get_int("split.count", 1));
  if (found_count != count)
    return make_error(ErrorCode::kMalformed,
                      "{}: metadata key 'split.count' is {}, the split has {} files", name,
                      found_count, count);
  VT_TRY(std::int64_t found, image.meta.get_int("split.no"));
  if (found != number)
    return make_error(ErrorCode::kMalformed,
                      "{}: metadata key 'split.no' is {}, the file's name says {}", name, found,
                      number);
  return Ok{};
}

}  // namespace

Result<std::unique_ptr<ModelFile>> GgufLoader::open(std::span<const std::byte> bytes,
                                                    const std::string& name) {
  std::unique_ptr<ModelFile> model(new ModelFile);
  model->path_ = name;
  VT_TRY(GgufImage image, parse_gguf(bytes, name));
  VT_TRY(std::int64_t count, split_count(image.meta, name));
  if (count > 1)
    return make_error(ErrorCode::kUnsupported,
                      "{}: metadata key 'split.count' is {}: a split cannot be opened from memory",
                      name, count);
  model->tensors_ = std::move(image.tensors);
  VT_RETURN_IF_ERROR(finish(std::move(image.meta), *model));
  return model;
}

Result<std::unique_ptr<ModelFile>> GgufLoader::open(const std::string& path) {
  std::unique_ptr<ModelFile> model(new ModelFile);
  model->path_ = path;
  VT_TRY(MappedFile file, MappedFile::open(path));
  VT_TRY(GgufImage image, parse_gguf(file.bytes(), path));
  VT_TRY(std::int64_t count, split_count(image.meta, path));
  if (count > 1) {
    VT_RETURN_IF_ERROR(open_split(path, std::move(file), std::move(image), count, *model));
    return model;
  }
  model->files_.push_back(std::move(file));
  model->tensors_ = std::move(image.tensors);
  VT_RETURN_IF_ERROR(finish(std::move(image.meta), *model));
  return model;
}

Status GgufLoader::open_split(const std::string& path, MappedFile first, GgufImage image,
                              std::int64_t count, ModelFile& model) {
  VT_TRY(std::int64_t opened, image.meta.get_int("split.no"));
  if (opened < 0 || opened >= count)
    return make_error(ErrorCode::kMalformed, "{}: metadata key 'split.no' is {}, wanted 0 to {}",
                      path, opened, count - 1);
  auto prefix = split_prefix(path, opened + 1, count);
  if (!prefix)
    return make_error(ErrorCode::kInvalid, "{}: file {} of a split of {} must be named {}", path,
                      opened + 1, count, quote_name(shard_name("NAME", opened + 1, count)));
  VT_TRY(std::int64_t total, image.meta.get_int("split.tensors.count"));
  Meta meta;
  for (std::int64_t i = 0; i < count; ++i) {
    std::string name = shard_name(*prefix, i + 1, count);
    GgufImage shard;
    if (i == opened) {
      shard = std::move(image);
      model.files_.push_back(std::move(first));
    } else {
      VT_TRY(MappedFile file, MappedFile::open(name));
      VT_TRY(shard, parse_gguf(file.bytes(), name));
      VT_RETURN_IF_ERROR(check_shard(shard, name, i, count));
      model.files_.push_back(std::move(file));
    }
    if (model.tensors_.size() + shard.tensors.size() > detail::kMaxTensors)
      return make_error(ErrorCode::kTooLarge, "{}: the split has over {} tensors", name,
                        detail::kMaxTensors);
    if (i == 0) meta = std::move(shard.meta);
    std::move(shard.tensors.begin(), shard.tensors.end(), std::back_inserter(model.tensors_));
  }
  if (static_cast<std::int64_t>(model.tensors_.size()) != total)
    return make_error(ErrorCode::kMalformed,
                      "{}: metadata key 'split.tensors.count' is {}, the {} files hold {} tensors",
                      path, total, count, model.tensors_.size());
  return finish(std::move(meta), model);
}

Status GgufLoader::finish(Meta meta, ModelFile& model) {
  model.kind_ = FileKind::kGguf;
  model.meta_ = std::move(meta);
  VT_TRY(std::string_view architecture, model.meta_.get_string("general.architecture", ""));
  model.architecture_ = architecture;
  VT_TRY(model.generation_, generation_from_gguf(model.meta_));
  return model.build_index();
}

}  // namespace vitrine
