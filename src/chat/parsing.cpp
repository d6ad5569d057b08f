#include "chat/parsing.h"

#include <algorithm>

namespace vitrine {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

}  // namespace

std::vector<MarkerStream::Piece> MarkerStream::push(std::string_view text) {
  held_ += text;
  std::vector<Piece> out;
  std::size_t begin = 0, at = 0;
  auto flush = [&](std::size_t end) {
    if (end > begin) out.push_back({held_.substr(begin, end - begin)});
    begin = end;
  };
  while (at < held_.size()) {
    std::string_view rest = std::string_view(held_).substr(at);
    int found = -1;
    bool partial = false;
    for (std::size_t i = 0; i < markers_.size(); ++i) {
      if (rest.starts_with(markers_[i])) {
        bool longer =
            found < 0 || markers_[i].size() > markers_[static_cast<std::size_t>(found)].size();
        if (longer) found = static_cast<int>(i);
      } else if (std::string_view(markers_[i]).starts_with(rest)) {
        partial = true;
      }
    }
    if (partial) break;  // more of it may come
    if (found < 0) {
      ++at;
      continue;
    }
    flush(at);
    out.push_back({{}, found});
    begin = at += markers_[static_cast<std::size_t>(found)].size();
  }
  flush(at);
  held_.erase(0, begin);
  return out;
}

void ContentWriter::write(std::string_view text, ChatOutput& out) {
  std::size_t last = text.find_last_not_of(kSpace);
  if (last == text.npos) {
    space_ += text;
    return;
  }
  if (after_call_) {
    space_.clear();
    text.remove_prefix(text.find_first_not_of(kSpace));
    last = text.find_last_not_of(kSpace);
    after_call_ = false;
  }
  out.content += space_;
  out.content += text.substr(0, last + 1);
  space_ = text.substr(last + 1);
}

std::string TrimStream::push(std::string_view text) {
  std::size_t last = text.find_last_not_of(kSpace);
  if (last == text.npos) {
    space_ += text;
    return {};
  }
  if (!std::exchange(begun_, true)) {
    space_.clear();
    text.remove_prefix(text.find_first_not_of(kSpace));
    last = text.find_last_not_of(kSpace);
  }
  std::string out = std::exchange(space_, std::string(text.substr(last + 1)));
  return out.append(text.substr(0, last + 1));
}

bool in_json_string(char c, bool& quoted, bool& escaped) {
  if (!quoted) return quoted = c == '"';
  if (escaped)
    escaped = false;
  else if (c == '\\')
    escaped = true;
  else if (c == '"')
    quoted = false;
  return true;
}

void JsonQuotes::push(std::string_view text) {
  if (!begun_ && !text.empty()) begun_ = true, object_ = text[0] == '{';
  for (char c : text)
    if (object_) in_json_string(c, quoted_, escaped_);
}

std::string_view trimmed(std::string_view text) {
  std::size_t first = text.find_first_not_of(kSpace);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::optional<ToolCall> call_from_json(const json::value& value) {
  const json::object* object = value.if_object();
  if (object == nullptr) return std::nullopt;
  const json::value* name = object->if_contains("name");
  if (name == nullptr || !name->is_string()) return std::nullopt;
  ToolCall call;
  call.name = name->get_string();
  call.arguments = "{}";
  for (const char* key : {"arguments", "parameters"})
    if (const json::value* arguments = object->if_contains(key)) {
      if (arguments->is_string())
        call.arguments = arguments->get_string();
      else
        call.arguments = to_json(*arguments);
      break;
    }
  return call;
}

std::optional<ToolCall> call_from_text(std::string_view text) {
  auto value = parse_json(trimmed(text), "tool call");
  return value.ok() ? call_from_json(*value) : std::nullopt;
}

std::size_t json_length(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quoted) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (--depth <= 0) return depth == 0 ? i + 1 : 0;
    }
  }
  return 0;
}

std::vector<ToolCall> calls_from_text(std::string_view text) {
  std::vector<ToolCall> out;
  text = trimmed(text);
  while (!text.empty()) {
    std::size_t size = json_length(text);
    if (size == 0) return {};
    auto value = parse_json(text.substr(0, size), "tool call");
    if (!value.ok()) return {};
    json::array one{*value};
    const json::array& list = value->is_array() ? value->get_array() : one;
    for (const json::value& item : list) {
      auto call = call_from_json(item);
      if (!call) return {};
      out.push_back(std::move(*call));
    }
    text.remove_prefix(size);
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n,;"), text.size()));
  }
  return out;
}

}  // namespace vitrine
