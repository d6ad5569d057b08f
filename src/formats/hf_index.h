// model.safetensors.index.json: which file of a sharded model holds which tensor.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace vitrine {

struct ShardIndex {
  std::vector<std::string> files;                              // plain names, no folders
  std::vector<std::pair<std::string, std::uint32_t>> tensors;  // name, number of its file; sorted
};

// `name` appears in errors.
Result<ShardIndex> parse_shard_index(std::string_view json, const std::string& name);

}  // namespace vitrine
