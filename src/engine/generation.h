// What the model's authors ask for, as a layer of sampling parameters.
#pragma once

#include "formats/model_file.h"
#include "sampling/params.h"

namespace vitrine {

// A value outside the allowed range is an error that names it. do_sample: false means greedy.
Result<SamplingParams> generation_layer(const GenerationDefaults& defaults);

}  // namespace vitrine
