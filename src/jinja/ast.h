// A parsed template.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "jinja/lexer.h"
#include "jinja/value.h"

namespace vitrine::jinja {

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct CallArgs {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr star, star_star;  // may be null
};

struct Expr {
  enum class Kind {
    kConstant,   // value
    kName,       // name
    kBlockText,  // what a filter or set block has rendered
    kList,       // items
    kTuple,      // items
    kDict,       // items: key, value, key, value
    kAttribute,  // items[0].name
    kItem,       // items[0][items[1]]
    kSlice,      // items[0][items[1]:items[2]:items[3]], null where left out
    kCall,       // items[0](args)
    kFilter,     // items[0] | name(args)
    kTest,       // items[0] is name(args)
    kNot,
    kNegate,
    kPlus,
    kBinary,  // items[0] name items[1]
    kConcat,  // items joined by ~
    kAnd,
    kOr,
    kCompare,    // items[0] ops[0] items[1] ops[1] items[2] ...
    kCondition,  // items[0] if items[1] else items[2], which may be null
  };
  Kind kind;
  Position at;
  int depth = 1;
  std::string name;
  Value value;
  std::vector<ExprPtr> items;
  std::vector<std::string> ops;
  CallArgs args;
};

struct Stmt;
using Body = std::vector<std::unique_ptr<Stmt>>;

struct Stmt {
  enum class Kind {
    kData,      // value
    kOutput,    // expr
    kIf,        // branches, otherwise
    kFor,       // target in expr if test: body, otherwise
    kSet,       // target = expr
    kSetBlock,  // target = body, through expr if that is not null
    kMacro,     // name, params, body
    kCall,      // expr (a call), params, body
    kFilter,    // expr over body
    kWith,      // targets and values in params, body
    kScope,     // body (a generation block, or the expressions of a print)
    kBreak,
    kContinue,
  };
  struct Branch {
    ExprPtr test;
    Body body;
  };
  struct Param {
    ExprPtr target;    // a name; of `with` also a tuple
    ExprPtr fallback;  // null: none
  };
  Kind kind;
  Position at;
  std::string name;
  Value value;
  ExprPtr target, expr, test;
  std::vector<Branch> branches;
  std::vector<Param> params;
  Body body, otherwise;
  bool recursive = false;
  // Macros and call blocks: which of the special names their bodies use.
  bool uses_caller = false, uses_kwargs = false, uses_varargs = false;
};

// Throws SyntaxFailure.
Body parse(std::string_view source);

}  // namespace vitrine::jinja
