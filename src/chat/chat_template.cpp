#include "chat/chat_template.h"

#include <algorithm>

#include "base/process_clock.h"
#include "base/utf8.h"
#include "chat/chatml.h"

namespace vitrine {
namespace {

using jinja::Text;
using jinja::Value;

constexpr const char* kToolUse = "tool_use";
constexpr std::size_t kMaxTemplates = 32;

Result<std::vector<std::pair<std::string, std::string>>> from_config(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> out;
  if (text.empty()) return out;
  VT_TRY(json::value config, parse_json(text, "tokenizer_config.json"));
  const json::object* object = config.if_object();
  const json::value* found = object != nullptr ? object->if_contains("chat_template") : nullptr;
  if (found == nullptr || found->is_null()) return out;
  if (found->is_string()) {
    out.emplace_back("default", std::string(found->get_string()));
    return out;
  }
  const json::array* list = found->if_array();
  if (list == nullptr || list->size() > kMaxTemplates)
    return make_error(
        ErrorCode::kMalformed,
        "tokenizer_config.json: chat_template: allowed a string or a list of up to {} "
        "named templates",
        kMaxTemplates);
  for (const json::value& item : *list) {
    const json::object* named = item.if_object();
    const json::value* name = named != nullptr ? named->if_contains("name") : nullptr;
    const json::value* source = named != nullptr ? named->if_contains("template") : nullptr;
    if (name == nullptr || source == nullptr || !name->is_string() || !source->is_string())
      return make_error(ErrorCode::kMalformed,
                        "tokenizer_config.json: chat_template: an entry without name or template");
    out.emplace_back(std::string(name->get_string()), std::string(source->get_string()));
  }
  return out;
}

Result<std::vector<std::pair<std::string, std::string>>> from_gguf(const Meta& meta) {
  constexpr std::string_view kKey = "tokenizer.chat_template";
  std::vector<std::pair<std::string, std::string>> out;
  for (auto it = meta.all().lower_bound(kKey);
       it != meta.all().end() && it->first.starts_with(kKey) && out.size() < kMaxTemplates; ++it) {
    std::string name = it->first == kKey ? "default" : it->first.substr(kKey.size());
    if (name != "default" && !name.starts_with('.')) continue;  // the list of names
    VT_TRY(std::string_view source, meta.get_string(it->first));
    out.emplace_back(name == "default" ? name : name.substr(1), std::string(source));
  }
  return out;
}

// The caller's text. Templates count characters, so it must be valid UTF-8.
Text words(const std::string& text, std::int32_t source) {
  return Text(utf8_valid(text) ? text : utf8_sanitize(text), true, source);
}

// A string that holds a JSON object becomes that object, which is what templates are written for.
Value arguments_value(const std::string& text, std::int32_t source) {
  auto parsed = parse_json(text, "arguments");
  if (parsed.ok() && parsed->is_object()) return jinja::from_json(*parsed, true, source);
  return Text(text, true, source);
}

Value calls_value(const std::vector<ToolCall>& calls, std::int32_t source) {
  std::vector<Value> list;
  for (const ToolCall& call : calls) {
    jinja::Dict function, entry;
    function.set("name", Text(call.name, true, source));
    function.set("arguments", arguments_value(call.arguments, source));
    entry.set("id", Text(call.id, true, source));
    entry.set("type", "function");
    entry.set("function", make_dict(std::move(function)));
    list.push_back(make_dict(std::move(entry)));
  }
  return jinja::make_list(std::move(list));
}

// False: nothing was.
bool add_what_is_left_out(json::array& tools) {
  const json::value parameters{{"type", "object"}, {"properties", json::object{}}};
  bool added = false;
  for (json::value& tool : tools) {
    json::object* object = tool.if_object();
    json::value* function = object != nullptr ? object->if_contains("function") : nullptr;
    if (function == nullptr || !function->is_object()) continue;
    added = function->get_object().emplace("description", "").second || added;
    added = function->get_object().emplace("parameters", parameters).second || added;
  }
  return added;
}

}  // namespace

ChatTemplate::ChatTemplate(const Tokenizer& tokenizer, std::string origin)
    : tokenizer_(tokenizer), origin_(std::move(origin)) {}

bool ChatTemplate::is_reserved(std::string_view name) {
  constexpr std::string_view kNames[] = {
      "messages",  "tools",     "add_generation_prompt", "bos_token",    "eos_token",
      "pad_token", "unk_token", "raise_exception",       "strftime_now", "start_of_text",
      "tokenize",  "loop",      "chat_template",         "namespace",    "range"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

Status ChatTemplate::add(std::string name, std::string source) {
  std::string where = origin_;
  if (name != "default") where += fmt::format(" ({})", name);
  VT_TRY(auto made, jinja::Template::parse(source, "chat template of " + where));
  // The format of tool calls is recognised from the default template and the one for tools.
  if (source_.empty() || name == "default" || name == kToolUse) source_ += source;
  templates_.emplace_back(std::move(name), std::move(made));
  return Ok{};
}

Result<std::unique_ptr<ChatTemplate>> ChatTemplate::load(const ModelFile& file,
                                                         const Tokenizer& tokenizer) {
  std::vector<std::pair<std::string, std::string>> found;
  std::string origin;
  if (file.kind() == FileKind::kGguf) {
    VT_TRY(found, from_gguf(file.meta()));
    origin = "GGUF metadata";
  } else if (!file.chat_template_jinja().empty()) {
    found.emplace_back("default", std::string(file.chat_template_jinja()));
    origin = "chat_template.jinja";
  } else {
    VT_TRY(found, from_config(file.tokenizer_config_json()));
    origin = "tokenizer_config.json";
  }
  if (found.empty()) return chatml(tokenizer);
  std::unique_ptr<ChatTemplate> out(new ChatTemplate(tokenizer, origin));
  for (auto& [name, source] : found) VT_RETURN_IF_ERROR(out->add(name, std::move(source)));
  out->study();
  return out;
}

std::unique_ptr<ChatTemplate> ChatTemplate::chatml(const Tokenizer& tokenizer) {
  std::unique_ptr<ChatTemplate> out(new ChatTemplate(tokenizer, "built in (ChatML)"));
  out->fallback_ = true;
  Status added = out->add("default", std::string(kChatMl));
  VT_CHECK(added.ok(), "{}", added.error().message);
  out->study();
  return out;
}

Result<std::unique_ptr<ChatTemplate>> ChatTemplate::from_source(std::string source,
                                                                std::string where,
                                                                const Tokenizer& tokenizer) {
  std::unique_ptr<ChatTemplate> out(new ChatTemplate(tokenizer, std::move(where)));
  VT_RETURN_IF_ERROR(out->add("default", std::move(source)));
  out->study();
  return out;
}

// What the template says about the model's answers.
void ChatTemplate::study() {
  tools_ = find_tool_format(source_);
  reasoning_ = find_reasoning_tags(source_);
  find_stops();
  auto show = [&](std::string_view text) {
    auto id = tokenizer_.find(text);
    if (id && tokenizer_.is_special(*id)) shown_specials_.push_back(*id);
  };
  if (tools_ != nullptr)
    for (std::string_view marker : tools_->markers) show(marker);
  show(reasoning_.begin);
  show(reasoning_.end);
  // Templates of models that take images accept content as a list of parts; some accept nothing
  // else.
  ChatInput probe;
  probe.messages.resize(1);
  probe.messages[0].role = "user";
  probe.messages[0].content = "vitrine-probe";
  auto shows = [&](bool parts) {
    auto text = render_with(probe, parts);
    return text.ok() && text->view().find("vitrine-probe") != std::string_view::npos;
  };
  parts_ = !shows(false) && shows(true);
  // Clients send calls back without content; some templates fail on that, or write "None".
  ChatMessage calls;
  calls.role = "assistant", calls.has_content = false;
  calls.tool_calls.push_back({.id = "callprobe", .name = "f", .arguments = "{}"});
  probe.messages.push_back(std::move(calls));
  auto text = render_with(probe, parts_);
  empty_content_ = !text.ok() || text->view().find("None") != std::string_view::npos;
}

void ChatTemplate::find_stops() {
  constexpr std::string_view kEnds[] = {
      "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>",  "<|end|>",      "<|endofturn|>",
      "<|return|>", "<|call|>",   "<turn|>",    "<|im_sep_end|>", "<|endoftext|>"};
  bool harmony = reads_reasoning(tools_);
  for (std::string_view end : kEnds) {
    // In harmony's format <|end|> ends one of several messages of an answer.
    if ((harmony && end == "<|end|>") || source_.find(end) == source_.npos) continue;
    auto id = tokenizer_.find(end);
    if (id && tokenizer_.is_special(*id))
      stop_token_ids_.push_back(*id);
    else if (fallback_)
      stops_.emplace_back(end);
  }
}

Value ChatTemplate::message_value(const ChatMessage& m, std::int32_t source, bool parts) const {
  jinja::Dict out;
  out.set("role", Text(m.role));
  if (!m.has_content && !empty_content_) {
    out.set("content", jinja::None{});
  } else if (parts) {
    jinja::Dict part;
    part.set("type", "text");
    part.set("text", words(m.content, source));
    out.set("content", jinja::make_list({make_dict(std::move(part))}));
  } else {
    out.set("content", words(m.content, source));
  }
  if (!m.tool_calls.empty()) out.set("tool_calls", calls_value(m.tool_calls, source));
  if (!m.tool_call_id.empty()) out.set("tool_call_id", words(m.tool_call_id, source));
  if (!m.name.empty()) out.set("name", words(m.name, source));
  if (!m.reasoning.empty()) {
    out.set("reasoning_content", words(m.reasoning, source));
    out.set("thinking", words(m.reasoning, source));
  }
  return make_dict(std::move(out));
}

// Some templates require fields that OpenAI's API makes optional: GPT-OSS's requires a description.
Result<Text> ChatTemplate::render(const ChatInput& input) const {
  auto text = render_with(input, parts_);
  if (text.ok() || text.error().code == ErrorCode::kInvalid) return text;
  ChatInput whole = input;
  if (!add_what_is_left_out(whole.tools)) return text;
  auto again = render_with(whole, parts_);
  return again.ok() ? std::move(again) : std::move(text);
}

Result<Text> ChatTemplate::render_with(const ChatInput& input, bool parts) const {
  jinja::Dict context;
  auto token = [&](const char* name, std::optional<std::int32_t> id) {
    if (id) context.set(name, Text(tokenizer_.piece(*id)));
  };
  token("bos_token", tokenizer_.bos());
  token("eos_token", tokenizer_.eos());
  token("unk_token", tokenizer_.unk());
  token("pad_token", tokenizer_.pad());
  if (fallback_) {
    // The tokenizer's own rule says whether a text begins with BOS.
    std::vector<std::int32_t> empty = tokenizer_.encode("");
    bool begins = !empty.empty() && tokenizer_.bos() && empty[0] == *tokenizer_.bos();
    context.set("start_of_text", Text(begins ? tokenizer_.piece(empty[0]) : ""));
  }
  for (const auto& [name, value] : input.kwargs)
    if (!is_reserved(name)) context.set(Text(std::string(name)), jinja::from_json(value, true));
  std::vector<Value> messages;
  std::int32_t source = 0;
  for (const ChatMessage& m : input.messages) messages.push_back(message_value(m, ++source, parts));
  context.set("messages", jinja::make_list(std::move(messages)));
  context.set("tools",
              input.tools.empty() ? Value() : jinja::from_json(input.tools, true, kFromTools));
  context.set("add_generation_prompt", input.add_generation_prompt);
  const jinja::Template* chosen = templates_[0].second.get();
  for (const auto& [name, made] : templates_)
    if (name == "default") chosen = made.get();
  if (!input.tools.empty())
    for (const auto& [name, made] : templates_)
      if (name == kToolUse) chosen = made.get();
  return chosen->render(context);
}

Result<ChatPrompt> ChatTemplate::prompt(const ChatInput& input) const {
  ChatPrompt out;
  VT_TRY(out.text, render(input));
  out.rendered_ns = process_ns();
  std::vector<ByteSpan> words;
  for (const jinja::Span& span : out.text.caller()) words.push_back({span.begin, span.end});
  // The template writes BOS itself; adding it here would double it.
  out.ids = tokenizer_.encode(out.text.view(), {.add_special = false}, words);
  return out;
}

}  // namespace vitrine
