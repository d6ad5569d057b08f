#include "server/chat_format.h"

#include "server/json_fields.h"

namespace vitrine {
namespace {

struct Markers {
  std::int32_t start, end;
};

std::optional<Markers> chatml_markers(const Tokenizer& tokenizer) {
  auto start = tokenizer.find("<|im_start|>"), end = tokenizer.find("<|im_end|>");
  if (!start || !end || !tokenizer.is_special(*start) || !tokenizer.is_special(*end))
    return std::nullopt;
  return Markers{*start, *end};
}

// Parts of one message's content, joined.
std::optional<HttpError> read_parts(const json::array& parts, const std::string& path,
                                    std::string& out) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::string at = fmt::format("{}.content[{}]", path, i);
    if (!parts[i].is_object())
      return bad_field(at, fmt::format("{}: found {}, allowed an object", at, describe(parts[i])));
    JsonFields fields(parts[i].get_object(), at);
    auto type = fields.text("type");
    if (!fields.error() && (!type || *type != "text"))
      return bad_field(at + ".type",
                       fmt::format("{}.type: found {}, allowed \"text\"; this server takes no "
                                   "images, sounds or files and fetches nothing",
                                   at, type ? describe(json::value(*type)) : "nothing"),
                       "unsupported_content");
    auto text = fields.text("text");
    if (!fields.error() && !text) fields.fail("text", "found nothing, allowed a string");
    fields.ignore({"annotations", "cache_control"});
    if (auto error = fields.close()) return error;
    out += *text;
  }
  return std::nullopt;
}

std::optional<HttpError> read_message(const json::value& value, const std::string& path,
                                      ChatMessage& out) {
  if (!value.is_object())
    return bad_field(path, fmt::format("{}: found {}, allowed an object", path, describe(value)));
  JsonFields fields(value.get_object(), path);
  auto role = fields.text("role");
  bool known = role && (*role == "system" || *role == "developer" || *role == "user" ||
                        *role == "assistant" || *role == "tool");
  if (!fields.error() && !known)
    fields.fail("role", fmt::format("found {}, allowed system, developer, user, assistant, tool",
                                    role ? describe(json::value(*role)) : "nothing"));
  const json::value* content = fields.any("content");
  // What a client may send back of an answer, and names that ChatML has no place for.
  fields.ignore({"name", "refusal", "annotations", "tool_call_id", "reasoning_content"});
  fields.refuse({"tool_calls", "function_call", "audio"});
  if (auto error = fields.close()) return error;
  out.role = *role == "developer" ? "system" : *role;
  if (content == nullptr) {
    if (out.role == "assistant") return std::nullopt;
    fields.fail("content", "found nothing, allowed a string or a list of text parts");
  } else if (content->is_string()) {
    out.content = content->get_string();
  } else if (content->is_array()) {
    return read_parts(content->get_array(), path, out.content);
  } else {
    fields.fail("content", fmt::format("found {}, allowed a string or a list of text parts",
                                       describe(*content)));
  }
  return fields.error();
}

void append(std::vector<std::int32_t>& ids, const std::vector<std::int32_t>& more) {
  ids.insert(ids.end(), more.begin(), more.end());
}

std::string plain_text(const std::vector<ChatMessage>& messages) {
  std::string out;
  for (const ChatMessage& m : messages) {
    std::string name = m.role;
    name[0] = static_cast<char>(name[0] - 'a' + 'A');
    // An answer begins with its own space; sent back, it must not get a second one.
    bool spaced = m.content.starts_with(' ');
    out += fmt::format("{}:{}{}\n\n", name, spaced ? "" : " ", m.content);
  }
  return out + "Assistant:";
}

}  // namespace

std::optional<HttpError> read_messages(const json::array& list, std::vector<ChatMessage>& out) {
  if (list.empty())
    return bad_field("messages", "messages: found an empty list, allowed at least one message");
  out.resize(list.size());
  for (std::size_t i = 0; i < list.size(); ++i)
    if (auto error = read_message(list[i], fmt::format("messages[{}]", i), out[i])) return error;
  return std::nullopt;
}

const char* chat_format_name(const Tokenizer& tokenizer) {
  return chatml_markers(tokenizer) ? "chatml" : "plain";
}

ChatPrompt format_chat(const Tokenizer& tokenizer, const std::vector<ChatMessage>& messages) {
  constexpr EncodeOptions kPlainText{.add_special = false, .parse_special = false};
  ChatPrompt out;
  // The tokenizer's own rule says whether a text begins with BOS.
  std::vector<std::int32_t> empty = tokenizer.encode("");
  if (!empty.empty() && tokenizer.bos() && empty[0] == *tokenizer.bos())
    out.ids.push_back(empty[0]);
  auto markers = chatml_markers(tokenizer);
  if (!markers) {
    append(out.ids, tokenizer.encode(plain_text(messages), kPlainText));
    out.stops.emplace_back("\n\nUser:");
    return out;
  }
  const std::vector<std::int32_t> newline = tokenizer.encode("\n", kPlainText);
  for (const ChatMessage& m : messages) {
    out.ids.push_back(markers->start);
    append(out.ids, tokenizer.encode(m.role + "\n" + m.content, kPlainText));
    out.ids.push_back(markers->end);
    append(out.ids, newline);
  }
  out.ids.push_back(markers->start);
  append(out.ids, tokenizer.encode("assistant\n", kPlainText));
  out.stop_token_ids.push_back(markers->end);
  return out;
}

}  // namespace vitrine
