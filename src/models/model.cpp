#include "models/model.h"

#include <algorithm>

namespace vitrine {

Result<const Arch*> find_arch(const ModelFile& file) {
  std::string known;
  for (const Arch* arch : all_archs()) {
    const auto& names = file.kind() == FileKind::kGguf ? arch->gguf : arch->hf;
    if (std::find(names.begin(), names.end(), file.architecture()) != names.end()) return arch;
    for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
  }
  if (file.architecture().empty())
    return make_error(
        ErrorCode::kNotFound, "{}: names no architecture ({})", file.path(),
        file.kind() == FileKind::kGguf ? "general.architecture" : "architectures in config.json");
  return make_error(ErrorCode::kUnsupported, "{}: architecture '{}' is not known; known are {}",
                    file.path(), file.architecture(), known);
}

Result<std::unique_ptr<Model>> load_model(const ModelFile& file, Device& device,
                                          const ModelOptions& options) {
  VT_TRY(const Arch* arch, find_arch(file));
  return arch->load(arch->name, file, device, options);
}

}  // namespace vitrine
