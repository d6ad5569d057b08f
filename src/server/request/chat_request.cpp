#include "server/request/chat_request.h"

#include <algorithm>
#include <cctype>

#include "base/process_clock.h"
#include "base/utf8.h"
#include "server/request/chat_constraint.h"
#include "server/request/limits.h"

namespace vitrine {
namespace {

// Parts of one message's content, joined.
std::optional<ApiError> read_parts(const json::array& parts, const std::string& path,
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

// {"name", "arguments"} of a call.
std::optional<ApiError> read_function(const json::object& object, const std::string& path,
                                      ToolCall& out) {
  JsonFields fields(object, path);
  auto name = fields.text("name", kMaxToolName);
  if (!fields.error() && !name) fields.fail("name", "found nothing, allowed a string");
  const json::value* arguments = fields.any("arguments");
  if (arguments != nullptr && !arguments->is_string() && !arguments->is_object())
    fields.fail("arguments", fmt::format("found {}, allowed a string that holds JSON, or an object",
                                         describe(*arguments)));
  if (auto error = fields.close()) return error;
  out.name = *name;
  if (arguments == nullptr)
    out.arguments = "{}";
  else if (arguments->is_string())
    out.arguments = arguments->get_string();
  else
    out.arguments = to_json(*arguments);
  return std::nullopt;
}

std::optional<ApiError> read_call(const json::value& value, const std::string& path,
                                  ToolCall& out) {
  if (!value.is_object())
    return bad_field(path, fmt::format("{}: found {}, allowed an object", path, describe(value)));
  JsonFields fields(value.get_object(), path);
  out.id = fields.text("id", kMaxToolName).value_or("");
  auto type = fields.text("type");
  if (type && *type != "function")
    fields.fail("type",
                fmt::format("found {}, allowed \"function\"", describe(json::value(*type))));
  const json::object* function = fields.object("function");
  fields.ignore({"index"});
  if (!fields.error() && function == nullptr)
    fields.fail("function", "found nothing, allowed an object");
  if (auto error = fields.close()) return error;
  return read_function(*function, path + ".function", out);
}

std::optional<ApiError> read_calls(JsonFields& fields, ChatMessage& out) {
  const json::array* calls = fields.list("tool_calls", kMaxToolCalls);
  if (calls == nullptr || calls->empty()) return std::nullopt;
  if (out.role != "assistant")
    return bad_field(fields.full("tool_calls"),
                     fields.full("tool_calls") + ": allowed only in messages of the assistant");
  out.tool_calls.resize(calls->size());
  for (std::size_t i = 0; i < calls->size(); ++i)
    if (auto error = read_call((*calls)[i], fmt::format("{}[{}]", fields.full("tool_calls"), i),
                               out.tool_calls[i]))
      return error;
  return std::nullopt;
}

std::optional<ApiError> read_content(JsonFields& fields, const json::value* content,
                                     const std::string& path, ChatMessage& out) {
  out.has_content = content != nullptr || out.tool_calls.empty();
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

std::optional<ApiError> read_message(const json::value& value, const std::string& path,
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
  if (fields.error()) return fields.error();
  out.role = *role == "developer" ? "system" : *role;
  const json::value* content = fields.any("content");
  out.name = fields.text("name", kMaxToolName).value_or("");
  out.tool_call_id = fields.text("tool_call_id", kMaxToolName).value_or("");
  out.reasoning = fields.text("reasoning_content").value_or("");
  if (auto error = read_calls(fields, out)) return error;
  // Fields of an earlier answer that a client may send back.
  fields.ignore({"refusal", "annotations"});
  fields.refuse({"function_call", "audio"});
  if (auto error = fields.close()) return error;
  return read_content(fields, content, path, out);
}

// Tool formats write names without escapes, so a name must not contain their markup.
bool is_name(std::string_view text) {
  static constexpr std::string_view kMarks = "_-.:/@";
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x80 || std::isalnum(byte) != 0 || kMarks.find(c) != kMarks.npos;
  });
}

// Takes the number of values, with all inside, from `left`; false where there are more.
bool count_values(const json::value& value, std::size_t& left) {
  if (left == 0) return false;
  --left;
  if (const json::array* list = value.if_array())
    return std::all_of(list->begin(), list->end(),
                       [&](const json::value& item) { return count_values(item, left); });
  const json::object* object = value.if_object();
  return object == nullptr || std::all_of(object->begin(), object->end(), [&](const auto& member) {
           return count_values(member.value(), left);
         });
}

// What a template is given is made of values, which cost far more than their bytes.
template <typename Values>
void check_values(JsonFields& fields, const char* name, const Values& values) {
  std::size_t left = kMaxTemplateValues;
  const bool fits = std::all_of(values.begin(), values.end(), [&](const auto& one) {
    if constexpr (std::is_same_v<Values, json::object>)
      return count_values(one.value(), left);
    else
      return count_values(one, left);
  });
  if (!fits)
    fields.fail(name, fmt::format("found more than {} values, which is what is allowed",
                                  kMaxTemplateValues));
}

void read_tools(JsonFields& fields, ChatInput& out) {
  const json::array* tools = fields.list("tools", kMaxTools);
  if (tools == nullptr) return;
  check_values(fields, "tools", *tools);
  for (std::size_t i = 0; i < tools->size() && !fields.error(); ++i) {
    std::string path = fmt::format("tools[{}]", i);
    const json::object* tool = (*tools)[i].if_object();
    if (tool == nullptr)
      return fields.fail(path, fmt::format("found {}, allowed an object", describe((*tools)[i])));
    JsonFields inner(*tool, path);
    auto type = inner.text("type");
    if (!inner.error() && (!type || *type != "function"))
      inner.fail("type", fmt::format("found {}, allowed \"function\"",
                                     type ? describe(json::value(*type)) : "nothing"));
    const json::object* function = inner.object("function");
    if (!inner.error() && function == nullptr)
      inner.fail("function", "found nothing, allowed an object");
    if (auto error = inner.close()) return fields.fail(std::move(*error));
    JsonFields described(*function, path + ".function");
    auto name = described.text("name", kMaxToolName);
    if (!described.error() && (!name || name->empty()))
      described.fail("name", "found nothing, allowed a name");
    if (!described.error() && !is_name(*name))
      described.fail("name", fmt::format("found {}, allowed letters, digits and _ - . : / @",
                                         describe(json::value(*name))));
    described.text("description");
    described.object("parameters");
    described.boolean("strict");
    if (auto error = described.close()) return fields.fail(std::move(*error));
  }
  out.tools = *tools;
}

void read_named_choice(JsonFields& fields, const json::object& named, const json::array& tools,
                       ToolChoice& out) {
  JsonFields inner(named, "tool_choice");
  auto type = inner.text("type");
  if (type && *type != "function")
    inner.fail("type", fmt::format("found {}, allowed \"function\"", describe(json::value(*type))));
  if (const json::object* function = inner.object("function"))
    out.name = JsonFields(*function, "tool_choice.function").text("name").value_or("");
  if (auto error = inner.close()) return fields.fail(std::move(*error));
  bool known = std::any_of(tools.begin(), tools.end(), [&](const json::value& tool) {
    return std::string_view(tool.at("function").at("name").as_string()) == out.name;
  });
  if (!known)
    fields.fail("tool_choice", fmt::format("found a function named {}, allowed those of \"tools\"",
                                           to_json(json::value(shortened(out.name)))));
}

// Call after read_tools(). "none" removes the tools.
ToolChoice read_tool_choice(JsonFields& fields, ChatInput& input) {
  ToolChoice out;
  const json::value* choice = fields.any("tool_choice");
  if (choice == nullptr || *choice == "auto" || fields.error()) return out;
  if (*choice == "none") {
    input.tools.clear();
    return out;
  }
  out.required = true;
  if (choice->is_object())
    read_named_choice(fields, choice->get_object(), input.tools, out);
  else if (*choice != "required")
    fields.fail("tool_choice",
                fmt::format("found {}, allowed \"auto\", \"none\", \"required\" or a function",
                            describe(*choice)));
  else if (input.tools.empty())
    fields.fail("tool_choice", "allowed \"required\" only with \"tools\"");
  return out;
}

void read_kwargs(JsonFields& fields, ChatInput& out) {
  if (auto effort = fields.text("reasoning_effort", kMaxEffortBytes))
    out.kwargs["reasoning_effort"] = *effort;
  const json::object* kwargs = fields.object("chat_template_kwargs");
  if (kwargs == nullptr) return;
  if (kwargs->size() > kMaxTemplateNames)
    return fields.fail("chat_template_kwargs", fmt::format("found {} names, allowed up to {}",
                                                           kwargs->size(), kMaxTemplateNames));
  check_values(fields, "chat_template_kwargs", *kwargs);
  if (fields.error()) return;
  for (const auto& [name, value] : *kwargs) {
    if (ChatTemplate::is_reserved(name))
      return fields.fail(fmt::format("chat_template_kwargs.{}", std::string(name)),
                         "a name that only the server sets");
    out.kwargs[name] = value;
  }
}

}  // namespace

std::optional<ApiError> read_messages(const json::array& list, std::vector<ChatMessage>& out) {
  if (list.empty())
    return bad_field("messages", "messages: found an empty list, allowed at least one message");
  out.resize(list.size());
  for (std::size_t i = 0; i < list.size(); ++i)
    if (auto error = read_message(list[i], fmt::format("messages[{}]", i), out[i])) return error;
  return std::nullopt;
}

namespace {

ChatInput read_input(JsonFields& fields, ToolChoice& choice) {
  ChatInput out;
  const json::array* list = fields.list("messages", kMaxMessages);
  if (list == nullptr) fields.fail("messages", "found nothing, allowed a list of messages");
  read_tools(fields, out);
  choice = read_tool_choice(fields, out);
  read_kwargs(fields, out);
  if (!fields.error())
    if (auto error = read_messages(*list, out.messages)) fields.fail(std::move(*error));
  return out;
}

}  // namespace

ChatInput read_chat_input(JsonFields& fields) {
  ToolChoice ignored;
  return read_input(fields, ignored);
}

ApiError template_error(const Error& error) {
  // It may show what the messages say.
  std::string why = shortened(error.message, 190);
  if (error.code == ErrorCode::kInvalid)
    return bad_field("messages",
                     fmt::format("messages: the model's chat template refuses them: {}", why));
  return bad_field("messages", fmt::format("messages: {}", why), "chat_template_error");
}

ChatCall read_chat_call(const Api& api, JsonFields& fields, std::optional<ConstraintSpec> text,
                        Request& request, std::vector<std::int32_t>& prompt) {
  ChatCall out;
  ToolChoice choice;
  ChatInput input = read_input(fields, choice);
  out.parallel = fields.boolean("parallel_tool_calls").value_or(true);
  if (api.chat == nullptr)
    fields.fail("messages", "the model has no tokenizer; /v1/completions takes token ids");
  fields.any("reasoning_budget");  // so that it is a known name even after an error
  if (fields.error()) return out;
  request.stamps.parsed = process_ns();
  auto made = api.chat->prompt(input);
  if (!made.ok()) {
    fields.fail(template_error(made.error()));
    return out;
  }
  request.stamps.templated = made->rendered_ns, request.stamps.tokenized = process_ns();
  const ToolFormat* format = api.chat->tools();
  bool reads = format != nullptr && (!input.tools.empty() || reads_reasoning(format));
  out.format = reads ? format : nullptr;
  if (!api.chat->reasoning().end.empty()) out.tags = &api.chat->reasoning();
  if (out.tags != nullptr) {
    std::string_view end = made->text.view();
    while (!end.empty() && (end.back() == '\n' || end.back() == ' ')) end.remove_suffix(1);
    out.in_reasoning = end.ends_with(out.tags->begin);
    out.reasoned = end.ends_with(out.tags->end);
  }
  if (out.format != nullptr || out.tags != nullptr) out.shown = api.chat->shown_specials();
  constrain_chat(api, fields, choice, input, std::move(text), out, request);
  if (request.constraint) request.stamps.compiled = process_ns();
  prompt = std::move(made->ids);
  return out;
}

}  // namespace vitrine
