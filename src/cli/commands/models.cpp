// vitrine models: what can be named instead of a path.
#include <filesystem>

#include "builtin/builtin.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/output.h"

namespace vitrine {
namespace {

struct Listed {
  std::string name, where, what;
  std::int64_t bytes = 0;
};

Listed describe(std::string name, std::string where,
                const Result<std::unique_ptr<ModelFile>>& file) {
  Listed out{std::move(name), std::move(where), "", 0};
  if (!file.ok()) {
    out.what = "cannot be read: " + file.error().message;
    return out;
  }
  std::int64_t weights = 0;
  for (const TensorInfo& t : (*file)->tensors()) {
    out.bytes += static_cast<std::int64_t>(t.data.size());
    weights += t.shape.elements();
  }
  out.what = fmt::format("{}, {:.1f} M weights", (*file)->architecture(),
                         static_cast<double>(weights) * 1e-6);
  return out;
}

std::vector<Listed> list() {
  std::vector<Listed> out;
  for (const BuiltinModel& m : builtin_models())
    out.push_back(describe(m.name, "built in", ModelFile::open_gguf(m.bytes, m.name)));
  std::error_code ignored;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(models_folder(), ignored))
    if (entry.path().extension() == ".gguf" ||
        std::filesystem::exists(entry.path() / "config.json", ignored))
      paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) {
    bool gguf = path.extension() == ".gguf";
    out.push_back(describe((gguf ? path.stem() : path.filename()).string(), path.string(),
                           ModelFile::open(path.string())));
  }
  return out;
}

Action add(const CommandLine& line) {
  auto json = std::make_shared<bool>(false);
  line.flag("--json", *json, "print one JSON document");
  return [json] {
    std::vector<Listed> models = list();
    if (*json) {
      json::array rows;
      for (const Listed& m : models)
        rows.push_back(json::object{
            {"name", m.name}, {"where", m.where}, {"bytes", m.bytes}, {"what", m.what}});
      print_json(json::object{{"folder", models_folder()}, {"models", std::move(rows)}});
      return 0;
    }
    for (const Listed& m : models)
      fmt::print("{:<20} {:>10}  {:<24} {}\n", m.name, human_bytes(m.bytes), m.where, m.what);
    if (models.empty())
      fmt::print("none: nothing is built in, and the folder {} has no models\n", models_folder());
    return 0;
  };
}

}  // namespace

extern const Command kCommand_models;
const Command kCommand_models{"models", 5, "models that can be named: built in, in the folder",
                              add};

}  // namespace vitrine
