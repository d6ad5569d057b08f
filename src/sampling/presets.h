// Sampling settings by use. A preset is a layer like any other: it sits just below the layer that
// names it, so that what the same request or command line sets by hand wins.
#pragma once

#include <span>
#include <string_view>

#include "sampling/params.h"

namespace vitrine {

struct PresetValue {
  const char* param;
  double value;
};

struct Preset {
  const char* name;
  const char* help;
  std::span<const PresetValue> values;
};

std::span<const Preset> all_presets();
// The preset as a layer; refuses an unknown name with the list of known ones.
Result<SamplingParams> preset_params(std::string_view name);

}  // namespace vitrine
