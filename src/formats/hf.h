// Folders in Hugging Face layout, and a bare tokenizer.json.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "formats/model_file.h"

namespace vitrine {

class HfLoader {
 public:
  static Result<std::unique_ptr<ModelFile>> open_folder(const std::string& path);
  static Result<std::unique_ptr<ModelFile>> open_tokenizer(const std::string& path);

 private:
  explicit HfLoader(const std::string& folder) : folder_(folder), model_(new ModelFile) {}
  Status load();
  Status load_config();
  Status load_weights();
  Status load_shards(const MappedFile& index);
  // The bytes of a file of the folder, kept mapped by the model; empty when it is not there.
  Result<std::string_view> map_text(const char* name);
  std::string path_of(std::string_view name) const;

  std::string folder_;
  std::unique_ptr<ModelFile> model_;
};

}  // namespace vitrine
