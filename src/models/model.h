// The architectures: one file of this folder each. A file reads in the order of the paper: the
// configuration, the weights of a layer, what a layer does. What files share without knowing it is
// in nn/ (decoder.h has the body); otherwise they may repeat each other.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/model_file.h"
#include "nn/model.h"

namespace vitrine {

struct Arch {
  const char* name;
  std::vector<std::string> gguf;  // general.architecture
  std::vector<std::string> hf;    // architectures[0]
  // `name` as above.
  Result<std::unique_ptr<Model>> (*load)(const char* name, const ModelFile& file, Device& device,
                                         const ModelOptions& options);
};
std::span<const Arch* const> all_archs();

// The error lists the known ones.
Result<const Arch*> find_arch(const ModelFile& file);
// The file must stay open as long as the model: weights may be views of it.
Result<std::unique_ptr<Model>> load_model(const ModelFile& file, Device& device,
                                          const ModelOptions& options);

}  // namespace vitrine
