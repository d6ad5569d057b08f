// A model's chat template: a conversation in, the tokens of a prompt out.
//
// The template comes from the model's files or from the user; a model without one gets ChatML.
// Roles and the template's own text may become special tokens, everything else from the caller is
// plain text even where it spells one. Immutable; any thread may use it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chat/message.h"
#include "chat/tool_format.h"
#include "formats/model_file.h"
#include "jinja/template.h"
#include "tokenizer/tokenizer.h"

namespace vitrine {

// Sources of the caller's bytes in a prompt (jinja::Span): message i is i + 1.
inline constexpr std::int32_t kFromOther = 0;   // variables of the template
inline constexpr std::int32_t kFromTools = -1;  // descriptions of tools

struct ChatPrompt {
  jinja::Text text;
  std::vector<std::int32_t> ids;
  std::int64_t rendered_ns = 0;  // process_ns() when the text was there
};

class ChatTemplate {
 public:
  // The model's own. The tokenizer must outlive it; kMalformed when the template has an error.
  static Result<std::unique_ptr<ChatTemplate>> load(const ModelFile& file,
                                                    const Tokenizer& tokenizer);
  // The user's; `where` names it.
  static Result<std::unique_ptr<ChatTemplate>> from_source(std::string source, std::string where,
                                                           const Tokenizer& tokenizer);

  // What a model without a template gets.
  static std::unique_ptr<ChatTemplate> chatml(const Tokenizer& tokenizer);

  // kInvalid: the template refused the conversation, in its own words; other errors name a place.
  Result<jinja::Text> render(const ChatInput& input) const;
  Result<ChatPrompt> prompt(const ChatInput& input) const;

  // Where it comes from: "tokenizer_config.json", "built in (ChatML)".
  const std::string& origin() const { return origin_; }
  bool is_fallback() const { return fallback_; }
  const std::string& source() const { return source_; }
  // How the model writes tool calls; null: it is not known.
  const ToolFormat* tools() const { return tools_; }
  // How it marks its reasoning; empty tags: not at all.
  const ReasoningTags& reasoning() const { return reasoning_; }
  // The tags as tokens.
  std::vector<std::int32_t> reasoning_begin() const { return tag_ids(reasoning_.begin); }
  std::vector<std::int32_t> reasoning_end() const { return tag_ids(reasoning_.end); }
  // Tokens, or where there are none texts, that end the assistant's turn.
  const std::vector<std::int32_t>& stop_token_ids() const { return stop_token_ids_; }
  const std::vector<std::string>& stops() const { return stops_; }
  // Special tokens that must stay in the text of an answer, because its parser needs them.
  const std::vector<std::int32_t>& shown_specials() const { return shown_specials_; }

  // Names that chat_template_kwargs cannot set.
  static bool is_reserved(std::string_view name);

 private:
  ChatTemplate(const Tokenizer& tokenizer, std::string origin);
  Status add(std::string name, std::string source);
  void study();
  void find_stops();
  std::vector<std::int32_t> tag_ids(const std::string& tag) const {
    return tokenizer_.encode(tag, {.add_special = false, .parse_special = true});
  }
  jinja::Value message_value(const ChatMessage& message, std::int32_t source, bool parts) const;
  Result<jinja::Text> render_with(const ChatInput& input, bool parts) const;

  const Tokenizer& tokenizer_;
  std::string origin_, source_;
  bool fallback_ = false;
  bool parts_ = false;          // the template wants content as a list of parts
  bool empty_content_ = false;  // it wants some where there is none
  std::vector<std::pair<std::string, std::unique_ptr<jinja::Template>>> templates_;
  const ToolFormat* tools_ = nullptr;
  ReasoningTags reasoning_;
  std::vector<std::int32_t> stop_token_ids_, shown_specials_;
  std::vector<std::string> stops_;
};

}  // namespace vitrine
