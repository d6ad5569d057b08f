// The flag that replaces a model's chat template.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "chat/chat_template.h"

namespace vitrine {

struct ChatFlags {
  std::string template_file;
  void add(CLI::App& app);
  // Null when there is no tokenizer. Says on stderr when the model brings no template.
  Result<std::unique_ptr<ChatTemplate>> load(const ModelFile& file,
                                             const Tokenizer* tokenizer) const;
};

}  // namespace vitrine
