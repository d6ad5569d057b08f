// GenerationDefaults from a file's metadata. A key of the wrong type is an error that names it.
#pragma once

#include "base/result.h"
#include "formats/meta.h"
#include "formats/model_file.h"

namespace vitrine {

Result<GenerationDefaults> generation_from_gguf(const Meta& meta);
// `generation`: generation_config.json; `config`: config.json, used for keys that the first does
// not have.
Result<GenerationDefaults> generation_from_hf(const Meta& generation, const Meta& config);
// Of sentence-transformers' 1_Pooling/config.json; see GenerationDefaults::pooling.
Result<std::optional<std::string>> pooling_from_hf(const Meta& pooling);

}  // namespace vitrine
