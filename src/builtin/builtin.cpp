#include "builtin/builtin.h"

namespace vitrine {

const BuiltinModel* find_builtin(std::string_view name) {
  for (const BuiltinModel& model : builtin_models())
    if (model.name == name) return &model;
  return nullptr;
}

}  // namespace vitrine
