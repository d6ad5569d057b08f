// Models made of random numbers: the shape of a known model, in memory, so that speed can be
// measured without files. They compute like real ones; their output is meaningless.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "formats/model_file.h"

namespace vitrine {

// `spec`: "SHAPE:TYPE", as in "llama-8b:bf16". The error lists the shapes and types. The returned
// file owns its memory, which is as large as the file of such a model would be.
Result<std::shared_ptr<const ModelFile>> random_model(std::string_view spec);

// "llama-1b, llama-8b, ..." and "bf16, f16, ...", for help texts.
std::string random_model_shapes();
std::string random_model_types();

}  // namespace vitrine
