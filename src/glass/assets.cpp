#include "glass/assets.h"

namespace vitrine {

const Asset* find_asset(std::span<const Asset> assets, std::string_view path) {
  for (const Asset& asset : assets)
    if (asset.path == path) return &asset;
  return nullptr;
}

}  // namespace vitrine
