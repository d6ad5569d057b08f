// A template's source as tokens: text outside the tags, and what is inside them. Line breaks become
// "\n", the last one goes; a line that holds only a tag leaves no empty line (Jinja's trim_blocks
// and lstrip_blocks, which chat templates are written for).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "jinja/object.h"

namespace vitrine::jinja {

// From 1; columns count bytes.
struct Position {
  std::uint32_t line = 1, column = 1;
};

// A Failure with its line and column.
struct SyntaxFailure {
  std::string message;
  Position at;
};

struct Token {
  enum class Type {
    kData,
    kVariableBegin,
    kVariableEnd,
    kBlockBegin,
    kBlockEnd,
    kName,
    kString,
    kInteger,
    kFloat,
    kOperator,
    kEnd
  };
  Type type;
  std::string text;  // of a string: unescaped; of a number: without underscores
  Position at;

  bool is(Type t) const { return type == t; }
  bool is_op(std::string_view op) const { return type == Type::kOperator && text == op; }
  bool is_name(std::string_view name) const { return type == Type::kName && text == name; }
};

// Throws SyntaxFailure. `source` is valid UTF-8. The last token is kEnd.
std::vector<Token> tokenize(std::string_view source);

}  // namespace vitrine::jinja
