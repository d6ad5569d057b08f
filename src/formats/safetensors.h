// safetensors: u64 header length | JSON header | data.
// The header gives each tensor's dtype, shape and [begin, end) in the data; together the tensors
// cover the data exactly, without holes, overlaps or a rest.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/model_file.h"

namespace vitrine {

// The tensors as views of `bytes`, in the order of their data. `name` appears in errors.
Result<std::vector<TensorInfo>> parse_safetensors(std::span<const std::byte> bytes,
                                                  const std::string& name);

}  // namespace vitrine
