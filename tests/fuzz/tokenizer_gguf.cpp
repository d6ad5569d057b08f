// The tokenizer and the chat template inside a GGUF file.
#include "chat/chat_template.h"
#include "fuzz/fuzz.h"

using namespace vitrine;

void fuzz_one(fuzz::Input input) {
  auto model = ModelFile::open_gguf(input.bytes(), "m");
  if (!model.ok()) return;
  auto tokenizer = Tokenizer::load(**model);
  if (!tokenizer.ok()) return;
  auto ids = (*tokenizer)->encode("A text, <s>[INST] 12\n é漢", {.parse_special = true});
  for (std::int32_t id : ids) VT_CHECK(id >= 0 && id < (*tokenizer)->vocab_size());
  (*tokenizer)->decode(ids);
  auto chat = ChatTemplate::load(**model, **tokenizer);
  if (!chat.ok()) return;
  ChatInput talk;
  talk.messages.resize(1);
  talk.messages[0].role = "user", talk.messages[0].content = "hello";
  (void)(*chat)->prompt(talk);
}
