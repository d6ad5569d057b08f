// vitrine devices: the backends of this build, what they found, and why one is not used.
#include "cli/command.h"
#include "cli/output.h"
#include "kernels/backend.h"

namespace vitrine {
namespace {

int devices(bool as_json) {
  // In the order in which `auto` tries them.
  std::vector<const BackendDef*> defs(all_backends().begin(), all_backends().end());
  std::sort(defs.begin(), defs.end(),
            [](auto* a, auto* b) { return a->preference > b->preference; });
  json::array list;
  bool chosen = false;
  for (const BackendDef* def : defs) {
    auto backend = def->create({});
    json::object item{{"backend", def->name}, {"usable", backend.ok()}};
    if (backend.ok()) {
      item["auto"] = !chosen;
      item["found"] = (*backend)->description();
      if (auto free = (*backend)->free_memory()) item["free_bytes"] = *free;
    } else {
      item["reason"] = backend.error().message;
    }
    std::string free;
    if (item.contains("free_bytes"))
      free = fmt::format(", {} free", human_bytes(item.at("free_bytes").as_int64()));
    if (!as_json)
      fmt::print("{:<6}{}{}{}\n", def->name,
                 backend.ok() ? (*backend)->description()
                              : fmt::format("not usable: {}", backend.error().message),
                 free, backend.ok() && !chosen ? "  <- auto" : "");
    chosen = chosen || backend.ok();
    list.push_back(std::move(item));
  }
  json::array absent;
  for (const char* reason : absent_backends()) {
    if (!as_json) fmt::print("{}\n", reason);
    absent.emplace_back(reason);
  }
  if (as_json)
    print_json(json::object{{"backends", std::move(list)}, {"absent", std::move(absent)}});
  return 0;
}

Action add(const CommandLine& line) {
  auto as_json = std::make_shared<bool>(false);
  line.flag("--json", *as_json, "print one JSON document");
  return [as_json] { return devices(*as_json); };
}

}  // namespace

extern const Command kCommand_devices;
const Command kCommand_devices{"devices", 75, "what can compute here", add};

}  // namespace vitrine
