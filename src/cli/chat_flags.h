// The flag that replaces a model's chat template.
#pragma once

#include <memory>
#include <string>

#include "chat/chat_template.h"
#include "cli/command_line.h"

namespace vitrine {

struct ChatFlags {
  std::string template_file;
  void add(const CommandLine& line);
  // Null when there is no tokenizer. Says on stderr when the model brings no template.
  Result<std::unique_ptr<ChatTemplate>> load(const ModelFile& file,
                                             const Tokenizer* tokenizer) const;
};

}  // namespace vitrine
