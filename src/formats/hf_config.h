// JSON settings (config.json, generation_config.json) as Meta.
#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "base/result.h"
#include "formats/meta.h"

namespace vitrine {

// Objects are flattened with dots ("rope_parameters.rope_theta"); arrays of scalars of one kind are
// MetaArrays, other arrays are flattened by index ("layers.0.kind"); null is absence. Strings are
// put into `texts`, which must outlive the Meta. `name` appears in errors.
Result<Meta> parse_hf_config(std::string_view json, const std::string& name,
                             std::deque<std::string>& texts);

}  // namespace vitrine
