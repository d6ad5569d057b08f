#include "cli/chat_flags.h"

#include "base/mapped_file.h"

namespace vitrine {

void ChatFlags::add(const CommandLine& line) {
  line.option("--chat-template", template_file,
              "a file with the Jinja template for chats; default: the model's own");
}

Result<std::unique_ptr<ChatTemplate>> ChatFlags::load(const ModelFile& file,
                                                      const Tokenizer* tokenizer) const {
  if (tokenizer == nullptr && template_file.empty()) return std::unique_ptr<ChatTemplate>();
  if (tokenizer == nullptr)
    return make_error(ErrorCode::kNotFound, "--chat-template: {} has no tokenizer", file.path());
  if (!template_file.empty()) {
    VT_TRY(MappedFile text, MappedFile::open(template_file));
    return ChatTemplate::from_source(std::string(text.text()), template_file, *tokenizer);
  }
  VT_TRY(auto out, ChatTemplate::load(file, *tokenizer));
  if (out->is_fallback())
    fmt::print(stderr, "{}: the model brings no chat template; chats are written as ChatML\n",
               file.path());
  return out;
}

}  // namespace vitrine
