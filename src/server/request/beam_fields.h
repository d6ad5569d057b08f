// Fields of beam search, under vLLM's names.
#pragma once

#include <optional>

#include "sampling/beam_search.h"
#include "server/request/json_fields.h"

namespace vitrine {

// None without "use_beam_search": true. `n`: texts to return; so many beams where no field says more.
std::optional<BeamOptions> read_beams(JsonFields& fields, int n);

}  // namespace vitrine
