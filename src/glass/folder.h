// A page from a folder instead of the embedded one (serve --ui-dir). All of it is read at start, so that
// nothing is opened while serving.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "glass/assets.h"

namespace vitrine {

class AssetFolder {
 public:
  static constexpr int kMaxFiles = 1000;
  static constexpr std::size_t kMaxBytes = 16 << 20;  // of all files together

  // Laid out as the page's build leaves it: index.html is "/", any other file F is "/ui/F", and F.gz
  // and F.br beside F are its encodings. Source maps (.map) are left out. Errors name the file.
  static Result<std::unique_ptr<AssetFolder>> load(const std::string& folder);
  std::span<const Asset> assets() const { return assets_; }

 private:
  struct File {
    std::string name, path, etag;
    std::vector<std::byte> bytes;
  };
  AssetFolder() = default;
  Status read(const std::string& folder);
  Status list_assets(const std::string& folder);
  const File* find(std::string_view name) const;

  std::vector<File> files_;  // by name; assets_ refers to them
  std::vector<Asset> assets_;
};

}  // namespace vitrine
