#include "trace/event_json.h"

#include <cmath>
#include <iterator>

#include "base/json.h"
#include "trace/packing.h"

namespace vitrine {
namespace {

template <typename T>
void append_number(std::string& out, T value) {
  const fmt::format_int text(value);
  out.append(text.data(), text.size());
}

void append_double(std::string& out, double value) {
  constexpr double kExact = 9007199254740992;  // 2^53
  if (!std::isfinite(value))
    out += "null";
  else if (value == std::floor(value) && std::abs(value) < kExact)
    append_number(out, static_cast<std::int64_t>(value));
  else
    fmt::format_to(std::back_inserter(out), "{}", value);
}

void append_word(std::string& out, FieldType type, std::uint8_t value) {
  const auto words = words_of(type);
  VT_CHECK(value < words.size(), "word {} of {}", value, words.size());
  out += '"';
  out += words[value];
  out += '"';
}

void append_value(std::string& out, FieldType type, Unpacker& from) {
  switch (type) {
    case FieldType::kU64:
      return append_number(out, from.take<std::uint64_t>());
    case FieldType::kI64:
      return append_number(out, from.take<std::int64_t>());
    case FieldType::kF64:
      return append_double(out, from.take<double>());
    case FieldType::kI32:
      return append_number(out, from.take<std::int32_t>());
    case FieldType::kU16:
      return append_number(out, from.take<std::uint16_t>());
    case FieldType::kFlag:
      out += from.take<std::uint8_t>() != 0 ? "true" : "false";
      return;
    case FieldType::kText:
      return append_json(out, from.text());
    case FieldType::kName:
      return append_json(out, from.take<const char*>());
    case FieldType::kPhase:
    case FieldType::kWait:
    case FieldType::kPageOp:
    case FieldType::kGuessSource:
      return append_word(out, type, from.take<std::uint8_t>());
  }
}

void append_list(std::string& out, std::span<const FieldInfo> columns, Unpacker& from) {
  out += '[';
  const auto rows = from.take<std::uint32_t>();
  for (std::uint32_t i = 0; i < rows; ++i) {
    out += i > 0 ? ",[" : "[";
    for (const FieldInfo& column : columns) {
      if (&column != columns.data()) out += ',';
      append_value(out, column.type, from);
    }
    out += ']';
  }
  out += ']';
}

}  // namespace

void append_event_fields(std::string& out, const PackedEvent& event) {
  Unpacker from(event.bytes);
  out += "\"seq\":";
  append_number(out, event.seq);
  std::string_view object;  // that is open
  for (const FieldInfo& field : event_info(event.kind).fields) {
    std::string_view name = field.name;
    const std::size_t dot = name.find('.');
    const std::string_view inside = dot == name.npos ? "" : name.substr(0, dot);
    if (!object.empty() && inside != object) out += '}';
    out += ",\"";
    if (!inside.empty() && inside != object) {
      out += inside;
      out += "\":{\"";
    }
    object = inside;
    out += dot == name.npos ? name : name.substr(dot + 1);
    out += "\":";
    if (field.is_list())
      append_list(out, field.columns, from);
    else
      append_value(out, field.type, from);
  }
  if (!object.empty()) out += '}';
}

void append_event_line(std::string& out, const PackedEvent& event) {
  out += "{\"event\":\"";
  out += event_info(event.kind).name;
  out += "\",";
  append_event_fields(out, event);
  out += "}\n";
}

}  // namespace vitrine
