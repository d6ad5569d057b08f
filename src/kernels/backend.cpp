#include "kernels/backend.h"

#include <algorithm>
#include <vector>

namespace vitrine {

void Backend::repeat(std::uint64_t key, const std::function<void()>& calls) {
  const Work before = take_work();
  bool called = false;
  repeat_(key, [&] {
    called = true;
    calls();
  });
  if (called)
    repeated_[key] = work();
  else
    add_work(repeated_.at(key));
  add_work(before);
}

Status check_device(const char* backend, const BackendOptions& options, int devices) {
  if (options.device >= 0 && options.device < devices) return Ok{};
  return make_error(ErrorCode::kInvalid, "device: found {}, {} allows {}", options.device, backend,
                    devices == 1 ? "only 0" : fmt::format("0 to {}", devices - 1));
}

std::span<const char* const> absent_backends() {
#ifdef VITRINE_NO_CUDA
  static const char* const kAbsent[] = {VITRINE_NO_CUDA};
  return kAbsent;
#else
  return {};
#endif
}

Result<std::unique_ptr<Backend>> create_backend(const std::string& name,
                                                const BackendOptions& options) {
  std::vector<const BackendDef*> defs(all_backends().begin(), all_backends().end());
  std::sort(defs.begin(), defs.end(),
            [](auto* a, auto* b) { return a->preference > b->preference; });
  std::string known = "auto";
  for (const BackendDef* def : defs) {
    known += fmt::format(", {}", def->name);
    if (name == def->name) return def->create(options);
    if (name == "auto") {
      auto backend = def->create(options);
      if (backend.ok() || backend.error().code != ErrorCode::kUnavailable) return backend;
    }
  }
  for (const char* absent : absent_backends())
    if (std::string_view(absent).starts_with(name + ":"))
      return make_error(ErrorCode::kInvalid, "{}; there are: {}", absent, known);
  return make_error(ErrorCode::kInvalid, "no backend '{}'; there are: {}", name, known);
}

}  // namespace vitrine
